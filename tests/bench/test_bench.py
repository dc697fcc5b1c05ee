# SPDX-License-Identifier: BSD-3-Clause
"""Every peer that is installed gives back what it wrote at every job, and reports say what was found."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mrec.bench import Report, Run, goals, plots
from mrec.bench.jobs import JOBS
from mrec.bench.peers import PEERS
from mrec.bench.report import replace_between
from mrec.errors import MrecError
from tests.cli.command import ROOT, mrec

MODULES = {"zarr-python": "zarr", "netcdf": "netCDF4", "zstandard": "zstandard", "plain": "numpy"}
ONE_CORE = [name for name, job in JOBS.items() if job.cores == 1]  # more take another process of each peer
HERE = str(Path(__file__).parent)


def module(peer: str) -> str:
    """What has to be importable for a peer to be there."""
    return MODULES.get(peer) or {"mdtraj": "mdtraj", "mdanalysis": "MDAnalysis"}.get(
        peer.partition("-")[2], peer.partition("-")[2] or peer
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """All peers at all jobs on one core, at a size that takes no time."""
    out = tmp_path_factory.mktemp("all")
    found = Run(out, jobs=ONE_CORE, data=["liquid:30x40"], precisions=[None, 1e-3], rounds=1).report()
    found.goals = [goal.of(found) for goal in goals.GOALS]
    found.save(out)
    assert plots.draw(found, out) == ["liquid-30x40.svg"]
    return found


def test_all_give_back_what_they_wrote(report: Report) -> None:
    assert not [f"{row.peer}, {row.job}: {row.reason}" for row in report.failures]


@pytest.mark.parametrize("peer", PEERS)
def test_who_is_installed_takes_part(report: Report, peer: str) -> None:
    there = importlib.util.find_spec("mrec" if peer.startswith("mrec") else module(peer)) is not None
    assert (report.peers[peer]["missing"] is None) == there
    done = {row.job for row in report.rows if row.peer == peer and row.samples}
    assert not there or done >= {"append", "read", "read-strided", "read-random", "read-atom", "read-column", "open"}


def test_mrec_does_every_job(report: Report) -> None:
    missed = {row.job: row.reason for row in report.rows if row.peer == "mrec" and not row.samples}
    assert not missed


def test_who_does_not_take_part_says_why(report: Report) -> None:
    assert all(row.samples or row.reason for row in report.rows)
    assert {(row.peer, row.job, row.precision) for row in report.rows} == {
        (peer, job, precision)
        for peer, found in report.peers.items()
        if found["missing"] is None
        for job in ONE_CORE
        for precision in (None, 1e-3)
    }


def test_sizes_are_what_the_formats_need(report: Report) -> None:
    size = report.row("append", "plain", "liquid").median("disk_bytes")
    assert size == 30 * 40 * 24
    assert report.row("append", "dcd-mdtraj", "liquid").median("disk_bytes") >= size / 2


def test_the_document_has_what_the_page_says(report: Report) -> None:
    document = json.loads(json.dumps(report.to_json()))
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    rows: set[str] = set().union(*document["rows"])
    for name in {*document, *document["machine"], *rows, *document["goals"][0], *document["rows"][0]["samples"][0]}:
        assert f"`{name}`" in page, name
    assert Report.from_json(document).to_json() == document
    assert Report.from_json(document).markdown() == report.markdown()


def test_every_goal_has_a_verdict(report: Report) -> None:
    assert {goal["held"] for goal in report.goals} <= {True, False, None}
    verdicts = {goal["name"]: goal["verdict"] for goal in report.goals}
    assert verdicts["open a closed record of ten arrays"] == "not in this run"  # there were no probes
    held = next(goal for goal in report.goals if goal["name"].startswith("memory of appending"))
    assert held["held"] and held["ratio"] >= 1


def test_plugins_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    names = [f"mine:{name}" for name in ("first_and_last", "NumpyFile", "Careless", "Absent", "Ending")]
    try:
        report = Run(
            tmp_path,
            jobs=["append", "first-and-last"],
            peers=["plain", "npy", "careless", "absent", "ending"],
            data=["chain:20x10"],
            precisions=[None],
            rounds=2,
            plugins=names,
        ).report()
    finally:
        JOBS.pop("first-and-last", None)
        for name in ("npy", "careless", "absent", "ending"):
            PEERS.pop(name, None)
        sys.modules.pop("mine", None)
    assert report.row("first-and-last", "npy", "chain").samples[0]["units"] == 2
    assert len(report.row("append", "npy", "chain").samples) == 2
    assert "careless is off by" in str(report.row("append", "careless", "chain").reason)
    assert report.row("append", "ending", "chain").failed
    assert report.peers["absent"]["missing"] == "ImportError: No module named 'absent'"


@pytest.mark.parametrize(
    "options",
    [
        {"jobs": ["run"]},
        {"peers": ["nobody"]},
        {"plugins": ["nowhere:job"]},
        {"plugins": ["mrec.bench.run:DATA"]},
        *({"data": [name]} for name in ("foo:9x9", "liquid:0x9", "liquid:9", "liquid:9x9999999999", "file:/nowhere")),
    ],
)
def test_unknown_names_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(MrecError):
        Run(tmp_path, **options).report()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--precision abc", "'abc': a precision is raw, or a number above 0"),
        ("--precision raw,inf", "a precision is raw"),
        ("--rounds x", "'x' is no whole number"),
        ("--rounds 0", "at least 1"),
    ],
)
def test_words_that_are_no_options(words: str, says: str) -> None:
    assert says in mrec("bench", *words.split(), code=2).stderr


def test_the_command(tmp_path: Path) -> None:
    for name in ("scratch", "probe"):  # of somebody else's
        (tmp_path / name).mkdir()
        (tmp_path / name / "kept").touch()
    words = "bench --quick --data liquid:20x30 --peers mrec,molrs,plain --jobs append,append-threaded --precision raw"
    done = mrec(*words.split(), "--rounds", 1, "--no-probes", "--out", tmp_path)
    assert done.stdout == (tmp_path / "results.md").read_text(encoding="utf-8") + "\n"
    assert {"results.json", "results.md", "liquid-20x30.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.glob("scratch*/*")] == ["scratch/kept"]
    found = Report.from_json(json.loads((tmp_path / "results.json").read_text(encoding="utf-8")))
    assert found.row("append-threaded", "plain", "liquid").reason == "works with one thread"
    assert found.row("append-threaded", "mrec", "liquid").reason in (None, "no threads option")


def test_the_command_says_what_there_is() -> None:
    listed = mrec("bench", "list").stdout
    assert all(f"  {name} " in listed for name in [*JOBS, *PEERS])


def test_pages_are_written_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin: it -->\nold\n<!-- end: it -->\nafter\n")
    replace_between(page, "it", "new")
    replace_between(page, "it", "newer")
    assert page.read_text() == "before\n<!-- begin: it -->\n\nnewer\n\n<!-- end: it -->\nafter\n"
    with pytest.raises(ValueError, match="other"):
        replace_between(page, "other", "new")
