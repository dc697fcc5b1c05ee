# SPDX-License-Identifier: BSD-3-Clause
"""Each rule that `make test-long-mutations` breaks stands in the core as it is there to be broken."""

from __future__ import annotations

import pytest

from tests.long.mutants import MUTANTS, Mutant, broken


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_the_rule_can_be_broken(mutant: Mutant) -> None:
    assert broken(mutant)
