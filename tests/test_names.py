# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import warnings

import pytest

from mrec.errors import SchemaError
from mrec.names import TRAJECTORY_BLOCKS, check_name, warn_lookalikes


@pytest.mark.parametrize("name", ["atoms", "x", "_private", "原子", "a b", "...", "zarr", "C:\\x", "é"])
def test_legal(name):
    assert check_name(name, "block") == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "__x", "zarr.json", "a\0", "\ud800", 3, None, b"x"])
def test_illegal(name):
    with pytest.raises(SchemaError, match="block"):
        check_name(name, "block")


@pytest.mark.parametrize("name", ["step", "time", "meta", "box"])
def test_reserved(name):
    with pytest.raises(SchemaError, match="choose another name"):
        check_name(name, "block", TRAJECTORY_BLOCKS)


@pytest.mark.parametrize("pair", [("x", "X"), ("\u00e9", "e\u0301"), ("stra\u00dfe", "STRASSE")])
def test_lookalikes_warn(pair):
    with pytest.warns(UserWarning, match="differ only"):
        warn_lookalikes(pair, "column")
    with pytest.warns(UserWarning):
        warn_lookalikes(pair[1:], "column", pair[:1])


def test_others_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_lookalikes(["x", "y", "x1", "ä", "a"], "column", TRAJECTORY_BLOCKS)
