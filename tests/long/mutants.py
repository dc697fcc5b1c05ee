# SPDX-License-Identifier: BSD-3-Clause
"""Builds of the core with one rule of docs/order-of-writes.md broken, and the scenarios that have to show it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy

REPOSITORY = Path(__file__).parents[2]

LAND = "    MREC_TRY(mrec_sequence_visit(seq, land, NULL, error));\n    if (durable) {\n"
SYNC = "        MREC_TRY(sync_all_data(seq, error));\n"
PUBLISH = "        MREC_TRY(publish_synced(seq, closing, error));\n"
DOCUMENTS = "    MREC_TRY(write_documents(seq, NULL, kind == MREC_COMMIT_AUTO, error));\n"
MARKER = "    MREC_TRY(write_marker(seq, !closing, NULL, error));\n"
LAST = [
    "        status = write_durable_file(seq, &synced, error);\n",
    "        status = write_marker(seq, !closing, &synced, error);\n",
]
WHEN = "    if (status == MREC_OK)\n"
CELL = "    MREC_TRY(mrec_visit_array(visit, arg, state->{}, 0, error));\n"
INDEX = (
    "    MREC_TRY(mrec_visit_array(visit, arg, state->offset, 0, error));\n"
    "    MREC_TRY(mrec_visit_array(visit, arg, state->step_index, 0, error));\n"
    "    MREC_TRY(mrec_visit_group(visit, arg, &state->group, error));\n"
)
SETTLE_D = "    MREC_TRY(mrec_commit_documents(seq, true, error)); /* (d) */\n"
SETTLE_DEAD = "    MREC_TRY(remove_dead(seq, standing, error));\n    return mrec"
SETTLE_E = "    return mrec_sequence_visit(seq, trim, NULL, error); /* (e), (f) */\n"


@dataclass(frozen=True)
class Mutant:
    """A broken rule: texts of one file of csrc and what replaces them, and where it shows.

    power, stops: names of scenarios of the power losses, and of the sweep with stops.
    """

    rule: str
    file: str
    edits: tuple[tuple[str, str], ...]
    power: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    commutes: bool = False  # nothing shows: the rule is an order that could be the other way round


MUTANTS = [
    Mutant(
        "chunk bytes before the index that names them",
        "shard.c",
        (
            (
                "    MREC_TRY(write_waiting(shard, error));\n    if (shard->first_dirty >=",
                "    if (shard->first_dirty >=",
            ),
            (
                "    shard->named_offset = shard->open_offset;\n    return MREC_OK;",
                "    shard->named_offset = shard->open_offset;\n    return write_waiting(shard, error);",
            ),
        ),
        stops=("chunks and shards", "partial tails"),
    ),
    Mutant(
        "documents before the marker",
        "commit.c",
        ((DOCUMENTS, MARKER + DOCUMENTS),),
        stops=("cell changes", "rows change", "steps go astray"),
    ),
    Mutant(
        "exact shapes once a block had no update in a frame",
        "block.c",
        (("state->updates == nframes;", "nframes == nframes;"),),
        power=("a block comes to rest",),
        stops=("a block comes to rest",),
    ),
    Mutant(
        "exact shapes after a durable flush",
        "commit.c",
        (
            (DOCUMENTS, DOCUMENTS.replace("kind == MREC_COMMIT_AUTO", "true")),
            ("write_documents(seq, &synced, false, error)", "write_documents(seq, &synced, true, error)"),
        ),
        stops=("a block comes to rest", "close"),
    ),
    Mutant(
        "data before the documents",
        "commit.c",
        ((LAND, DOCUMENTS + LAND),),
        stops=("rows change", "cell changes", "steps go astray"),
    ),
    Mutant(
        "data synced before the durable file",
        "commit.c",
        ((SYNC + PUBLISH, PUBLISH + SYNC),),
        power=("one column", "several shards"),
    ),
    Mutant(
        "the durable file before the marker",
        "commit.c",
        (
            (LAST[0] + WHEN + LAST[1], LAST[1] + WHEN + LAST[0]),
            ("    MREC_TRY(name_durable_file(seq, synced, error));\n", ""),
            (
                "    return name_marker(seq, synced, error);\n}\n\n/* Documents",
                "    MREC_TRY(name_marker(seq, synced, error));\n"
                "    return name_durable_file(seq, synced, error);\n}\n\n/* Documents",
            ),
        ),
        power=("one column", "several shards"),
        stops=("partial tails",),
        commutes=True,
    ),
    Mutant(
        "three slots: one may be named by the durable file",
        "shard.c",
        (("#define NSLOTS 3", "#define NSLOTS 2"), (" && s->offset != shard->durable_offset", "")),
        power=("open tail",),
    ),
    Mutant(
        "a place that the index names is not overwritten",
        "shard.c",
        ((" && s->offset != shard->named_offset", ""),),
        power=("open tail",),
        stops=("partial tails",),
    ),
    Mutant(
        "fdatasync of data",
        "shard.c",
        (
            ("    MREC_TRY(mrec_file_sync(shard->files->vfs, shard->fd, shard->path, error));\n", ""),
            ("        MREC_TRY(mrec_files_sync(shards[0]->files->vfs, files, n, error));\n", "        (void)files;\n"),
        ),
        power=("one column",),
    ),
    Mutant(
        "fsync of directories",
        "vfs.c",
        (
            (
                "    return sync_path(vfs, path, true, error);",
                "    (void)vfs, (void)path, (void)error;\n    return MREC_OK;",
            ),
        ),
        power=("creation", "several shards"),
    ),
    Mutant(
        "documents, the durable file and the marker are synced before they are renamed",
        "vfs.c",
        (("    MREC_TRY(mrec_files_sync(vfs, files, n, error));\n", "    (void)files;\n"),),
        power=("one column",),
    ),
    Mutant(
        "closing syncs the documents that automatic flushes replaced",
        "commit.c",
        (("        MREC_TRY(mrec_sequence_visit(seq, sync_document, &w, error));\n", ""),),
        power=("close and open", "every transition unsynced"),
    ),
    Mutant(
        "closing syncs the names of the documents that were replaced",
        "commit.c",
        (("mrec_commit_directories(seq, closing, error)", "mrec_commit_directories(seq, false, error)"),),
        power=("close and open", "one column"),
    ),
    Mutant(
        "opening syncs what it found",
        "reopen.c",
        (
            (
                "    MREC_TRY(mrec_tree_sync(vfs, path, error));\n    return mrec_parent_sync(vfs, path, error);",
                "    return mrec_parent_sync(vfs, path, error);",
            ),
        ),
        power=("kills of one column", "restart of one column"),
    ),
    Mutant(
        "opening writes a new durable file",
        "reopen.c",
        (("    MREC_TRY(mrec_commit_durable_file(seq, true, error));  /* (c) */\n", ""),),
        power=("open after kills", "close and open"),
    ),
    Mutant(
        "recovery takes the tails from the durable file",
        "array.c",
        (("        mrec_shard_set_place(shard, durable->chunk, durable->place);\n", "        (void)0;\n"),),
        power=("one column",),
    ),
    Mutant(
        "recovery restores the marker",
        "reopen.c",
        (("    MREC_TRY(restore_marker(seq, standing->marker_text, error));\n", "    (void)restore_marker;\n"),),
        power=("restart of one column",),
        stops=("reopen after a restart",),
    ),
    Mutant(
        "documents are cut before index entries",
        "reopen.c",
        (
            (SETTLE_D, ""),
            (
                SETTLE_E,
                SETTLE_E.replace("return ", "MREC_TRY(").replace("error);", "error));")
                + "    return mrec_commit_documents(seq, true, error);\n",
            ),
        ),
        power=("kills of one column", "truncation in a shard"),
        stops=("truncate", "reopen"),
        commutes=True,  # what lies past the end is not read, with an entry or without
    ),
    Mutant(
        "dead arrays are removed",
        "reopen.c",
        (
            (
                "    for (size_t i = 0; i < standing->ndead; i++) {",
                "    for (size_t i = 0; i < 0 * standing->ndead; i++) {",
            ),
        ),
        stops=("truncate to nothing", "truncate"),
    ),
    Mutant(
        "box/step_index, origin and boundary before vectors",
        "cell.c",
        (
            (CELL.format("step_index"), CELL.format("vectors") + CELL.format("step_index")),
            (CELL.format("boundary") + CELL.format("vectors"), CELL.format("boundary")),
        ),
        stops=("cell appears",),
    ),
    Mutant(
        "offset before step_index",
        "block.c",
        ((INDEX, "\n".join([*(lines := INDEX.split("\n"))[1::-1], *lines[2:]])),),
        stops=("rows change",),
        commutes=True,  # entries of what is not published are cut off wherever they are
    ),
    Mutant(
        "offset and step_index before the block loses its attributes",
        "block.c",
        ((INDEX, "\n".join([*(lines := INDEX.split("\n"))[2:3], *lines[:2], *lines[3:]])),),
        stops=("rows change",),
    ),
]


# ---- building ----------------------------------------------------------------------------------------------------


def compile_into(source: Path, target: Path, *flags: str) -> None:
    own = (REPOSITORY / "mrec/include", REPOSITORY / "csrc/include", REPOSITORY / "csrc")
    includes = [*own, numpy.get_include(), sysconfig.get_path("include")]
    command = ["cc", "-std=c11", "-O1", "-fPIC", "-fvisibility=hidden", "-w", *flags, *(f"-I{i}" for i in includes)]
    subprocess.run([*command, "-c", str(source), "-o", str(target)], check=True)


def build_base(folder: Path) -> dict[str, Path]:
    """Objects of every source, unbroken."""
    folder.mkdir(parents=True, exist_ok=True)
    cython = folder / "_core.c"
    subprocess.run([sys.executable, "-m", "cython", "-3", "mrec/_core.pyx", "-o", cython], cwd=REPOSITORY, check=True)
    objects = {}
    for source in [cython, *sorted((REPOSITORY / "csrc").glob("*.c"))]:
        objects[source.name] = folder / f"{source.stem}.o"
        compile_into(source, objects[source.name], "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION")
    return objects


def broken(mutant: Mutant) -> str:
    """The text of its file with the rule broken; ValueError when the text that says the rule is not there."""
    text = (REPOSITORY / "csrc" / mutant.file).read_text()
    for old, new in mutant.edits:
        if text.count(old) != 1:
            raise ValueError(f"{mutant.rule}: {mutant.file} holds {text.count(old)} times {old!r}")
        text = text.replace(old, new)
    return text


def build(mutant: Mutant | None, objects: dict[str, Path], folder: Path) -> None:
    """A folder to import the mutant from."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "mrec", folder / "mrec", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if mutant is not None:
        source = folder / mutant.file
        source.write_text(broken(mutant))
        objects = {**objects, mutant.file: folder / "mutant.o"}
        compile_into(source, objects[mutant.file])
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    libraries = subprocess.run(
        ["pkg-config", "--libs", "libdeflate", "libzstd"], check=True, capture_output=True, text=True
    ).stdout
    subprocess.run(
        [
            "cc",
            "-shared",
            *map(str, objects.values()),
            "-o",
            folder / f"mrec/_core{suffix}",
            "-pthread",
            *shlex.split(libraries),
        ],
        check=True,
    )


# ---- trying ------------------------------------------------------------------------------------------------------


def try_scenarios(power: list[str], stops: list[str], rounds: int) -> None:
    """Run in a process of its own: raises what the suites find."""
    from tests.faults import sweep
    from tests.faults.story import memory
    from tests.power import loss

    for scenario in sweep.SCENARIOS:
        if scenario.name in stops:
            with memory() as folder:
                run = sweep.Sweep(scenario, folder)
                for fault in sweep.FAULTS:
                    for k in run.points(fault) if fault.stops else ():
                        run.run(fault, k)
    for scenario in loss.SCENARIOS:
        if scenario.name in power:
            with memory() as folder:
                simulation = loss.Simulation(scenario, folder, again=0.3)
                for _ in range(rounds):
                    simulation.round(2)


if __name__ == "__main__":
    given = dict(argument.split("=") for argument in sys.argv[1:])
    try_scenarios(given["power"].split(","), given["stops"].split(","), int(given["rounds"]))
