# SPDX-License-Identifier: BSD-3-Clause
"""Sections, references and aligned blocks between mrec and molrs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec

molrs = pytest.importorskip("molrs")
from molrs.core import MetaValue  # noqa: E402
from molrs.io.mrec import MrecFile, MrecReader, MrecWriter, SequenceSchema  # noqa: E402

U8 = np.uint64
TAGGED: dict[str, tuple[str, Any]] = {
    "flag": ("bool", True),
    "i32": ("i32", -(2**31)),
    "i64": ("i64", -(2**63)),
    "u32": ("u32", 2**32 - 1),
    "u64": ("u64", 2**64 - 1),
    "f64": ("f64", -0.0),
    "nan": ("f64", float("nan")),
    "text": ("string", "héliß \0"),
    "doc": ("json", {"a": [1, 2.5, None]}),
    "bool3": ("bool3", (True, False, True)),
    "i32x3": ("i32x3", (-1, 0, 2**31 - 1)),
    "i64x3": ("i64x3", (-1, 0, 2**63 - 1)),
    "u32x3": ("u32x3", (0, 1, 2**32 - 1)),
    "u64x3": ("u64x3", (0, 1, 2**64 - 1)),
    "f64x3": ("f64x3", (5e-324, -0.0, float("inf"))),
    "f64x6": ("f64x6", (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)),
    "f64x9": ("f64x9", tuple(i / 7 for i in range(9))),
}


def blocks() -> dict[str, mrec.Block]:
    n = 7
    rng = np.random.default_rng(4)
    whole = {t: np.arange(n).astype(t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16")}
    atoms: dict[str, Any] = {f"c_{t.replace('?', 'bool')}": values for t, values in whole.items()}
    atoms |= {
        "x": rng.normal(size=n),
        "element": ["O", "", "H", "é", "水", "a\0b", "\0é"],
        "v": rng.normal(size=(n, 2, 3)),
    }
    atoms["bfac"] = np.ma.array(rng.normal(size=n), mask=np.arange(n) % 3 == 0)
    atoms["label"] = np.ma.array(np.array(list("abcdefg"), object), mask=np.arange(n) % 2 == 0)
    bonds = {"atomi": np.array([0, 6], U8), "atomj": np.array([1, 5], U8)}
    return {
        "atoms": mrec.Block(atoms, precision={"x": 1e-3}),
        "bonds": mrec.Block(bonds, targets={"atomi": "atoms", "atomj": "atoms"}),
        "grid": mrec.Block({"rho": np.arange(24.0)}, structural_shape=(2, 3, 4)),
        "many": {"v": np.arange(330_000) % 1000 / 8},
    }


@pytest.fixture(scope="module", params=["directory", "zip"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ours") / "ours.mrec"
    box = mrec.Box.from_rows([[4, 0, 0], [1, 5, 0], [0, 0, 6]], origin=[1, 2, 3], periodic=[True, False, True])
    meta = {key: value for key, (_, value) in TAGGED.items()}
    types = {key: tag for key, (tag, _) in TAGGED.items()}
    forcefield = mrec.Frame(
        {"atom:lj": {"epsilon": [0.1, 0.2], "itom": ["A", "B"]}},
        meta={"name": "lj", "units": {"energy": "kcal/mol"}, "more": {"a": [1]}},
    )
    mrec.create(
        path,
        frame=mrec.Frame(blocks(), box=box, meta=meta, meta_types=types),
        system=mrec.Frame(blocks() | {"bare": mrec.Block(nrows=5)}, box=mrec.Box.undefined()),
        forcefield=forcefield,
        meta={"molrec_version": 1, "a": {"b": [None, 1]}},
    )
    return path if request.param == "directory" else Path(mrec.pack(path))


def test_molrs_reads_our_sections(written: Path) -> None:
    found = MrecFile(written)
    assert found.meta() == {"molrec_version": 1, "a": {"b": [None, 1]}}
    ours = mrec.open(written)
    for section in ("frame", "system"):
        theirs = getattr(found, section)()
        expected = getattr(ours, section)
        assert set(theirs.keys()) == set(expected)
        for name, block in expected.items():
            compare_block(theirs[name], block)
        assert theirs["bonds"].targets() == {"atomi": "atoms", "atomj": "atoms"}
    assert np.array_equal(found.frame().box.matrix, ours.frame.box.vectors)
    assert tuple(found.frame().box.origin) == (1, 2, 3) and tuple(found.frame().box.pbc) == (True, False, True)


def compare_block(theirs: Any, ours: mrec.Block) -> None:
    assert set(theirs.keys()) == set(ours)
    assert theirs.n_rows == ours.nrows
    for name, values in ours.items():
        validity = theirs.validity(name)
        null = np.ma.getmaskarray(values).reshape(len(values), -1).any(axis=1)
        assert (np.zeros(len(values), bool) if validity is None else ~np.asarray(validity)).tolist() == null.tolist()
        valid = np.asarray(np.ma.getdata(values))[~null]
        given = np.asarray(theirs[name])[~null]
        if valid.dtype.kind in "OT":
            assert given.tolist() == valid.tolist()
        else:
            assert given.dtype == valid.dtype and given.tobytes() == valid.tobytes()
        assert theirs.precision(name) == ours.precision.get(name)


def test_molrs_reads_every_tag(written: Path) -> None:
    meta = MrecFile(written).frame().meta
    ours = mrec.open(written).frame
    assert ours.meta_types == {key: tag for key, (tag, _) in TAGGED.items()}
    for key, (tag, value) in TAGGED.items():
        assert meta.dtype(key) == tag
        given = meta[key]
        given = given.copy() if hasattr(given, "copy") and tag == "json" else given
        for found in (given, ours.meta[key]):
            found = tuple(found.tolist()) if isinstance(found, np.ndarray) else found
            assert repr(found) == repr(value) and type(found) is type(value)


def test_molrs_reads_our_forcefield(written: Path) -> None:
    section = MrecFile(written).forcefield()
    ours = mrec.open(written).forcefield
    assert section is not None
    assert section.document == ours.meta and set(section.tables) == set(ours)
    for name, block in ours.items():
        compare_block(section.tables[name], block)


def test_trajectories_of_mrec_with_references_in_molrs(tmp_path: Path) -> None:
    path = tmp_path / "ours.mrec"
    schema = (
        mrec.Schema()
        .block("atoms", rows=3)
        .column("x", "f64")
        .block("links", targets={"a": "atoms"})
        .column("a", "u64")
        .block("extra", aligned_with="atoms")
        .column("w", "f64")
    )
    with mrec.TrajectoryWriter(path, schema) as writer:
        for i in range(5):
            n = 3 + i // 2
            atoms, extra = {"x": np.arange(float(n)) + i}, {"w": np.arange(float(n)) * i}
            writer.append(i, atoms=atoms, extra=extra, links={"a": np.array([n - 1], U8)})
    for source in (path, Path(mrec.pack(path))):
        reader = MrecReader(source)
        for i, frame in enumerate(mrec.open(source).trajectory):
            theirs = reader[i]
            for name in ("atoms", "links", "extra"):
                compare_block(theirs[name], mrec.Block(frame[name], nrows=frame[name].nrows))
    with MrecWriter.open(path) as writer:  # and holds what we declared
        with pytest.raises((ValueError, RuntimeError, OSError)):
            writer.append(molrs.Frame({"links": _links([9])}), 5)
    assert mrec.open(path).trajectory.schema == schema


def _links(rows: list[int]) -> Any:
    block = molrs.Block()
    block.insert("a", np.array(rows, U8))
    return block


def test_trajectories_of_molrs_with_references_here(tmp_path: Path) -> None:
    path = tmp_path / "theirs.mrec"

    def frame(i: int, n: int) -> Any:
        atoms, extra = molrs.Block(), molrs.Block()
        atoms.insert("x", np.arange(float(n)) + i)
        extra.insert("w", np.arange(float(n)) * i)
        return molrs.Frame(
            {"atoms": atoms, "links": _links([n - 1]), "extra": extra}, meta={"pe": MetaValue("f64", 1.0 * i)}
        )

    schema = SequenceSchema.from_frames([frame(0, 3), frame(1, 4)])
    schema.declare_target("links", "a", "atoms").declare_aligned("extra", "atoms")
    with MrecWriter(path, schema) as writer:
        for i in range(4):
            writer.append(frame(i, 3 + i), i)
    with mrec.TrajectoryWriter.open(path) as writer:
        assert writer.schema.blocks["links"].targets == {"a": "atoms"}
        assert writer.schema.blocks["extra"].aligned_with == "atoms"
        with pytest.raises(mrec.errors.SchemaError, match="refers to row 6 of 'atoms', which has 6"):
            writer.append(4, links={"a": np.array([6], U8)}, values={"pe": 4.0})
        writer.append(4, links={"a": np.array([0], U8)}, values={"pe": 4.0})
    reader = MrecReader(path)
    for i, ours in enumerate(mrec.open(path).trajectory):
        assert ours["links"]["a"].tolist() == [0 if i == 4 else 2 + i]
        for name in ours:
            compare_block(reader[i][name], mrec.Block(ours[name], nrows=ours[name].nrows))


def test_molrs_reads_what_we_wrote_of_its_own_snapshot(tmp_path: Path) -> None:
    """Through mrec and back to molrs: every section that came from molrs."""
    from tests import golden

    source = golden.ROOT / "snapshot.mrec"
    with mrec.open(source) as record:
        mrec.create(tmp_path / "again.mrec", frame=record.frame, system=record.system, meta=record.meta)
    theirs, ours = MrecFile(source), MrecFile(tmp_path / "again.mrec")
    for section in ("frame", "system"):
        before, after = getattr(theirs, section)(), getattr(ours, section)()
        assert set(before.keys()) == set(after.keys())
        expected = getattr(mrec.open(source), section)
        for name in before.keys():
            compare_block(after[name], expected[name])
        assert dict(before.meta.items()) == dict(after.meta.items())
