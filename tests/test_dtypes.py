# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import json
import math
import pathlib
import re

import numpy as np
import pytest

from mrec import dtypes
from mrec.dtypes import CANONICAL, DTYPES, TAGS
from mrec.errors import SchemaError

HEADER = pathlib.Path(__file__).parents[1] / "csrc/include/mrec.h"


def test_codes_are_those_of_the_header():
    enum = re.search(r"typedef enum mrec_dtype \{(.*?)\} mrec_dtype;", HEADER.read_text(), re.DOTALL)[1]
    bare = re.sub(r"/\*.*?\*/", "", enum, flags=re.DOTALL)
    names = [name.lower() for name in re.findall(r"MREC_(\w+)(?:,| =|\s)", bare)]
    assert names[: len(DTYPES)] == list(DTYPES)
    assert [d.code for d in DTYPES.values()] == list(range(13))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("f64", "f64"), ("float64", "f64"), (np.float64, "f64"), (np.dtype(">f8"), "f64"), (float, "f64"),
        ("u8", "u8"), ("uint8", "u8"), (np.int32, "i32"), ("i8", "i8"), (bool, "bool"), (str, "string"),
        (np.dtype("U5"), "string"), (np.dtypes.StringDType(), "string"), ("string", "string"), ("complex64", "c64"),
        ("c128", "c128"), (DTYPES["i16"], "i16"),
    ],
)  # fmt: skip
def test_either_name_is_accepted(spec, name):
    assert dtypes.column_type(spec).name == name


@pytest.mark.parametrize("spec", ["f32", "float32", np.float32, "f16", np.float16])
def test_narrow_floats_say_what_to_do(spec):
    with pytest.raises(SchemaError, match="precision"):
        dtypes.column_type(spec)


@pytest.mark.parametrize("spec", [None, "f99", object, "M8[s]", 7, np.longdouble])
def test_other_types_are_refused(spec):
    with pytest.raises(SchemaError, match="no column type"):
        dtypes.column_type(spec)


def test_sixteen_tags():
    names = "bool i32 i64 u32 u64 f64 string json bool3 i32x3 i64x3 u32x3 u64x3 f64x3 f64x6 f64x9"
    assert list(TAGS) == names.split()
    assert (TAGS["f64x6"].width, TAGS["bool3"].dtype.name, TAGS["json"].json) == (6, "bool", True)
    assert dtypes.value_tag(np.float64).name == "f64"
    for other in ("i8", "c64", "f64x2", "f32", None):
        with pytest.raises(SchemaError, match="per-step"):
            dtypes.value_tag(other)


def test_canonical_table():
    assert len(CANONICAL) == 23 + 13 + 1 + 3 + 3 + 9
    assert CANONICAL["atomic_number"].name == "u64"
    assert CANONICAL["ix"].name == "i32"


@pytest.mark.parametrize(
    ("tag", "value", "document"),
    [
        ("f64", 1.5, 1.5), ("f64", 3, 3.0), ("f64", math.inf, "Infinity"), ("f64", -math.inf, "-Infinity"),
        ("i64", 2**53, 2**53), ("i64", 2**53 + 1, "9007199254740993"), ("i64", -(2**63), "-9223372036854775808"),
        ("u64", 2**64 - 1, "18446744073709551615"), ("bool", True, True), ("string", "é\0", "é\0"),
        ("json", {"a": [1, None]}, {"a": [1, None]}), ("json", None, None), ("f64x3", (1, 2.5, 3), [1.0, 2.5, 3.0]),
        ("bool3", [True, False, True], [True, False, True]), ("i64", np.int8(-3), -3), ("f64", np.float32(0.5), 0.5),
        ("u64x3", np.array([0, 1, 2**63], np.uint64), [0, 1, str(2**63)]),
    ],
)  # fmt: skip
def test_typed_json(tag, value, document):
    encoded = dtypes.to_json(TAGS[tag], value)
    assert json.dumps(encoded) == json.dumps(document)
    decoded = dtypes.from_json(TAGS[tag], document)
    assert np.array_equal(decoded, value)
    assert json.dumps(dtypes.to_json(TAGS[tag], decoded)) == json.dumps(document)


def test_nan_and_negative_zero_and_matrix():
    assert dtypes.to_json(TAGS["f64"], math.nan) == "NaN"
    assert math.isnan(dtypes.from_json(TAGS["f64"], "NaN"))
    assert (
        math.copysign(1, dtypes.from_json(TAGS["f64"], json.loads(json.dumps(dtypes.to_json(TAGS["f64"], -0.0))))) < 0
    )
    assert dtypes.to_json(TAGS["f64x9"], np.arange(9.0).reshape(3, 3)) == list(map(float, range(9)))


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("i64", 1.0), ("i64", True), ("i64", 2**63), ("i64", -(2**63) - 1), ("u64", -1), ("i32", 2**31), ("bool", 1),
        ("f64", True), ("f64", "1"), ("f64", 2**53 + 1), ("f64", 10**400), ("string", b"a"), ("string", "\ud800"),
        ("f64x3", [1.0, 2.0]), ("f64x3", 1.0), ("f64x9", np.zeros((9, 1))), ("json", math.nan), ("json", {1: 2}),
        ("json", {"a": {None: 1}}), ("json", object()), ("json", "\udcff"), ("f64", None), ("bool3", [1, 0, 1]),
    ],
)  # fmt: skip
def test_inexact_values_are_refused(tag, value):
    with pytest.raises(ValueError):
        dtypes.to_json(TAGS[tag], value)


@pytest.mark.parametrize(
    ("tag", "document"),
    [
        ("f64", "nan"), ("f64", "1.5"), ("f64", True), ("f64", None), ("i64", "5"), ("i64", 5.0), ("i64", "1e30"),
        ("u64", "-9007199254740993"), ("i64", "9223372036854775808"), ("bool", 0), ("string", 1), ("f64x3", [1, 2]),
        ("f64x3", "NaN"), ("i64", "09007199254740993"), ("f64", math.nan), ("i64", "٩٠٠٧١٩٩٢٥٤٧٤٠٩٩٣"),
    ],
)  # fmt: skip
def test_other_forms_are_refused(tag, document):
    with pytest.raises(ValueError):
        dtypes.from_json(TAGS[tag], document)


def test_exact_json_integers_beyond_2_53_are_read():
    assert dtypes.from_json(TAGS["u64"], 2**64 - 1) == 2**64 - 1
    assert dtypes.from_json(TAGS["i64"], -(2**53) - 1) == -(2**53) - 1


def test_cyclic_document_is_refused():
    cycle: list = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="JSON"):
        dtypes.json_text(cycle)
