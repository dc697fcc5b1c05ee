# SPDX-License-Identifier: BSD-3-Clause
"""Other people's libraries. Each module imports its library only when it is used."""
