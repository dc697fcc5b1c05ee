"""zarr.json: strict, bounded, and nothing unknown taken for known."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from mrec.errors import CorruptData, UnsupportedCodec, UnsupportedVersion
from mrec.zarr.json import parse
from mrec.zarr.metadata import ArrayMeta, GroupMeta, fill_json, parse_array, parse_fill, parse_group, parse_node
from tests import golden

DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10, 3],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0,
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": "start",
            },
        }
    ],
    "attributes": {"note": "ü"},
}


def changed(path, value):
    document = copy.deepcopy(DOCUMENT)
    *parents, last = path
    at = document
    for key in parents:
        at = at[key]
    at[last] = value
    return json.dumps(document)


def test_documents_of_golden_stores_come_back_letter_by_letter():
    files = [file for record in golden.ROOT.glob("*.mrec") for file in record.rglob("zarr.json")]
    assert len(files) > 90
    for file in files:
        text = file.read_text()
        assert parse_node(text, str(file)).document() == text


def test_split_leading():
    meta = parse_array(json.dumps(DOCUMENT), "x")
    prefix, suffix = meta.split_leading()
    for n in (0, 7, 2**50):
        assert prefix + str(n) + suffix == meta.document(n)
        assert parse_array(prefix + str(n) + suffix, "x").shape == (n, 3)
    assert list(json.loads(meta.document())) == list(DOCUMENT)
    text = json.dumps(DOCUMENT, separators=(",", ":"), ensure_ascii=False)
    compact = parse_array(text, "x")
    assert compact == meta
    assert compact.document() == text
    assert compact.split_leading()[0] + "12" + compact.split_leading()[1] == compact.document(12)
    assert "attributes" not in GroupMeta().document()


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": Infinity}', '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', "{", "", "[1] 2", '{"a": 01}',
     '{"a": "\ud800"}', '"\\ud800"', '{"\\udfff": 1}', "[" * 200 + "]" * 200, "[" * 100000, "\ufeff{}",
     '{"a": 1e999}', "[-1e400]"],
)  # fmt: skip
def test_json_is_strict(text):
    with pytest.raises(CorruptData, match="here"):
        parse(text.encode("utf-8", "surrogatepass"), "here")


def test_json_integers_are_exact():
    assert parse('{"a": 9007199254740993, "b": -9223372036854775808}', "x") == {"a": 2**53 + 1, "b": -(2**63)}
    assert parse(b"[" * 90 + b"]" * 90, "x")
    with pytest.raises(CorruptData):
        parse("1" * 100000, "x")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["shape"], [-1, 3]),
        (["shape"], [True, 3]),
        (["shape"], [1.0, 3]),
        (["shape"], ["1", 3]),
        (["shape"], 10),
        (["shape"], [2**63, 3]),
        (["shape"], [2**62, 2**62]),
        (["shape"], [0, 2**61]),
        (["shape"], [10]),
        (["chunk_grid", "configuration", "chunk_shape"], [0, 3]),
        (["chunk_grid", "configuration", "chunk_shape"], [8]),
        (["chunk_grid", "configuration", "chunk_shape"], [2**40, 2**40]),
        (["chunk_grid", "configuration"], 3),
        (["chunk_key_encoding", "configuration", "separator"], "-"),
        (["fill_value"], "nan"),
        (["fill_value"], None),
        (["fill_value"], "0x12"),
        (["fill_value"], "0x7ff8_00000000000"),
        (["fill_value"], "0x-7ff800000000000"),
        (["fill_value"], True),
        (["attributes"], []),
        (["dimension_names"], ["a"]),
        (["node_type"], "table"),
        (["data_type"], 5),
    ],
)
def test_malformed(path, value):
    with pytest.raises(CorruptData, match="here"):
        parse_node(changed(path, value), "here")


@pytest.mark.parametrize("key", ["shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"])
def test_missing(key):
    document = {k: v for k, v in DOCUMENT.items() if k != key}
    with pytest.raises(CorruptData, match=key):
        parse_node(json.dumps(document), "here")


INNER = ["codecs", 0, "configuration"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["codecs"], []),
        (["codecs"], {}),
        (["codecs"], [{"name": "crc32c"}]),
        (["codecs"], [{"name": "bytes"}]),
        (["codecs"], [{"name": "bytes", "configuration": {"endian": "middle"}}]),
        (["codecs"], [{"name": "vlen-utf8"}]),
        (["codecs"], [{"name": "bytes", "configuration": {"endian": "big"}}] * 2),
        (["codecs"], [5]),
        (["codecs"], [{"name": "bytes", "configuration": {"endian": "big"}, "extra": 1}]),
        ([*INNER, "chunk_shape"], [3, 3]),
        ([*INNER, "chunk_shape"], [0, 3]),
        ([*INNER, "index_location"], "middle"),
        ([*INNER, "codecs", 0], {"name": "transpose", "configuration": {"order": [0, 0]}}),
        ([*INNER, "codecs", 0], {"name": "transpose", "configuration": {"order": [0]}}),
        ([*INNER, "codecs", 0], {"name": "transpose", "configuration": {"order": ["C"]}}),
        ([*INNER, "codecs", 1], {"name": "gzip", "configuration": {"level": 10}}),
        ([*INNER, "codecs", 1], {"name": "numcodecs.shuffle", "configuration": {"elementsize": 0}}),
        ([*INNER, "codecs", 1], {"name": "zstd", "configuration": {"level": 3, "checksum": 1}}),
    ],
)
def test_codecs_that_mean_nothing(path, value):
    with pytest.raises(CorruptData, match="here"):
        _ = parse_array(changed(path, value), "here").chain


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ([*INNER, "codecs", 1], {"name": "blosc", "configuration": {}}, "blosc"),
        ([*INNER, "codecs", 1], "lz4", "lz4"),
        ([*INNER, "codecs", 1], {"name": "gzip", "configuration": {"level": 1, "window": 3}}, "window"),
        ([*INNER, "index_codecs", 1], {"name": "gzip", "configuration": {"level": 1}}, "index"),
        (["data_type"], "float8_e4m3", "float8_e4m3"),
        (["data_type"], {"name": "numpy.datetime64", "configuration": {"unit": "s"}}, "datetime64"),
        (["chunk_grid"], {"name": "rectangular", "configuration": {}}, "rectangular"),
        (["chunk_key_encoding"], {"name": "fan", "configuration": {}}, "fan"),
        (["storage_transformers"], [{"name": "x"}], "transformers"),
    ],
)
def test_unknown_is_named(path, value, name):
    with pytest.raises(UnsupportedCodec, match=f"here.*{name}.*zarr-python"):
        _ = parse_array(changed(path, value), "here").chain


def test_unknown_keys():
    assert isinstance(parse_node(changed(["extra"], {"must_understand": False, "a": 1}), "x"), ArrayMeta)
    for value in (1, {"must_understand": True}, {}, {"must_understand": 0}):
        with pytest.raises(UnsupportedVersion, match="extra"):
            parse_node(changed(["extra"], value), "x")
    for version in (2, 4, "3", None, True):
        with pytest.raises(UnsupportedVersion, match="zarr_format"):
            parse_node(changed(["zarr_format"], version), "x")


def test_node_types():
    with pytest.raises(CorruptData, match="group"):
        parse_group(json.dumps(DOCUMENT), "x")
    with pytest.raises(CorruptData, match="array"):
        parse_array('{"zarr_format": 3, "node_type": "group"}', "x")
    for raw in (b"[]", b"3", b"\xff{}"):
        with pytest.raises(CorruptData):
            parse_node(raw, "x")


@pytest.mark.parametrize(
    ("data_type", "json_value", "value"),
    [
        ("float64", "NaN", np.nan),
        ("float64", "-Infinity", -np.inf),
        ("float64", "0x7ff8000000000001", np.array(0x7FF8000000000001, "u8").view("f8")[()]),
        ("float32", "0x7fc00001", np.array(0x7FC00001, "u4").view("f4")[()]),
        ("float64", -0.0, -0.0),
        ("float64", 1, 1.0),
        ("complex64", [1.5, "NaN"], np.complex64(complex(1.5, np.nan))),
        ("int64", -(2**63), -(2**63)),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", True, True),
        ("string", "ü", "ü"),
    ],
)
def test_fill(data_type, json_value, value):
    found = parse_fill(json_value, data_type)
    if data_type == "string":
        assert found == value
    else:
        dtype = np.dtype(data_type)
        assert np.array(found, dtype).tobytes() == np.array(value, dtype).tobytes()
    again = fill_json(found, data_type)
    assert again == json_value or (json_value == 1 and again == 1.0)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [("int8", 128), ("uint8", -1), ("int8", 1.0), ("bool", 0), ("string", None), ("complex64", [1.0]), ("int8", True)],
)
def test_fill_of_another_type(data_type, value):
    with pytest.raises(CorruptData, match="fill"):
        parse_fill(value, data_type)
