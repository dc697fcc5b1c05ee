# SPDX-License-Identifier: BSD-3-Clause
import sys

from mrec.cli import main

sys.exit(main())
