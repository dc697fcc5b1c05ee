# SPDX-License-Identifier: BSD-3-Clause
"""One repair: what verifies of a record, as a new one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from mrec._core import Lock
from mrec.errors import (
    CorruptData,
    InvalidValue,
    MrecError,
    NotARecord,
    RecordExists,
    RecordNotFound,
    UnsupportedCodec,
)
from mrec.record.carry import carry, carry_beside, extras
from mrec.record.output import new_record
from mrec.record.record import KINDS, check_version
from mrec.repair.archive import Salvage
from mrec.repair.beside import Beside, bad_nodes, gone_nodes, incomplete_arrays, keys_of
from mrec.repair.plan import Plan, make_plan
from mrec.repair.report import Loss, Report, first_of, ranges
from mrec.repair.scan import Scan
from mrec.repair.source import Source
from mrec.repair.state import standing_state
from mrec.repair.write import undeclare_target, write_frames
from mrec.trajectory.standing import MARKER
from mrec.trajectory.writer import lock_errors
from mrec.verify import verify
from mrec.verify.report import Finding, Log, Progress
from mrec.verify.report import Report as Findings
from mrec.verify.state import State
from mrec.verify.trajectory import count_frames, read_schema
from mrec.verify.tree import ROOT, Tree, live_order
from mrec.zarr.metadata import parse_node
from mrec.zarr.store import open_store
from mrec.zarr.write import sync_directories, write_group
from mrec.zarr.zip import ZipStore

PathLike = str | os.PathLike[str]

#: Frames that a record may claim whatever its files hold, and how many more for each byte of them.
_FRAMES, _FRAMES_A_BYTE = 64 << 20, 64


def repair_record(
    path: PathLike,
    out: PathLike,
    drop: Collection[str],
    keep_frames: bool,
    trust_marker: bool,
    progress: Progress | None,
) -> Report:
    """See `mrec.repair`."""
    source, output = os.path.abspath(os.fsdecode(path)), os.path.abspath(os.fsdecode(out))
    _check_places(source, output)
    report = Report(source, output)
    with _held(source), new_record(output, False) as made:
        return _Repair(_opened(source, report), made, report, progress).run(drop, keep_frames, trust_marker)


def _check_places(source: str, output: str) -> None:
    if not os.path.exists(source):
        raise RecordNotFound(f"{source}: there is no record")
    if os.path.lexists(output):
        raise RecordExists(f"{output} is there already; a repaired record goes to a new path")
    if os.path.realpath(output).startswith(os.path.realpath(source) + os.sep):
        raise InvalidValue(f"{output} lies in the damaged record, to which nothing is written")


@contextmanager
def _held(source: str) -> Iterator[None]:
    """No writer begins on the record meanwhile. RecordLocked when one has."""
    if not os.path.isdir(source):
        yield
        return
    with lock_errors(source):
        lock = Lock(source)
    try:
        yield
    finally:
        lock.release()


def _opened(source: str, report: Report) -> Source:
    """The files of a record; of a packed one as far as its entries are to be found."""
    salvage = Salvage()
    try:
        store = open_store(source)
    except (CorruptData, UnsupportedCodec) as e:
        store = ZipStore(source, salvage)
        report.notes.append(f"the zip file is damaged: {' '.join(str(e).split()).removeprefix(f'{source}: ')}")
    if not any(store.exists(kind) for kind in KINDS):
        raise NotARecord(f"{source} holds none of {', '.join(KINDS)}: it is no record")
    return Source(store, salvage.doubtful, salvage.incomplete)


class _Repair:
    """One repair: from `files` to a new record at `made`."""

    def __init__(self, files: Source, made: str, report: Report, progress: Progress | None) -> None:
        self.files, self.store, self.made, self.report = files, files.store, made, report
        self.log = Log(Findings(report.path), progress)
        self.beside = Beside(made)

    def run(self, drop: Collection[str], keep_frames: bool, trust_marker: bool) -> Report:
        """Read, write, verify what was written."""
        self._check_version()
        tree = self._tree(trust_marker) if self.store.exists(ROOT) else None
        if tree is None and drop:
            raise InvalidValue("there is no trajectory to drop anything of")
        plan = None if tree is None else self._plan(tree, drop, keep_frames)
        self._write(plan)
        self._settle()
        sync_directories(self.made)
        self.report.findings = self.log.report.findings
        self.report.beside = self.beside.lost
        return self.report

    def _check_version(self) -> None:
        try:
            found = parse_node(self.files.get("meta/zarr.json") or b"", "meta")
        except MrecError:
            return
        check_version(found.attributes, self.report.path)

    # ---- trajectory ----------------------------------------------------------------------------------------------

    def _tree(self, trust_marker: bool) -> Tree | None:
        """The documents of the state that stands; None when there is none to go by."""
        standing = standing_state(self.log, self.files, trust_marker)
        self.report.notes += standing.notes
        self.beside.lost |= standing.lost
        tree = None if standing.state is None else self._documents(standing.state)
        if tree is not None and read_schema(tree) is not None and count_frames(tree) is not None:
            return tree
        found = [finding.message for finding in self.log.report.findings if (finding.array or "").startswith(ROOT)]
        why = self.files.bad.get(MARKER) or (found[0] if found else "nothing says what it holds")
        self.beside.lost[ROOT] = f"all of it: {MARKER}: {why.removeprefix(f'{MARKER}: ')}"
        return None

    def _documents(self, state: State) -> Tree:
        return Tree(self.log, self.files, state, still=True, incomplete=self.files.incomplete)

    def _plan(self, tree: Tree, drop: Collection[str], keep_frames: bool) -> Plan:
        schema, nstep = read_schema(tree), count_frames(tree)
        assert schema is not None
        assert nstep is not None
        self._check_count(nstep)
        tree.load(live_order(schema))
        scan = Scan(tree, schema, nstep)
        scan.run()
        plan = make_plan(scan, drop, keep_frames)
        self.report.frames, self.report.kept = nstep, int(plan.frames.sum())
        self.report.lost_frames = ranges(~plan.frames)
        self.report.losses = [
            Loss(part, ranges(frames), self._why(part), not plan.keeps(part), plan.would_keep(part))
            for part, frames in scan.lost.items()
        ]
        return plan

    def _check_count(self, nstep: int) -> None:
        """Refuse a number of frames that the files cannot account for: what is noted of each would fill the memory."""
        stored = self.files.stored(ROOT)
        if nstep > _FRAMES + _FRAMES_A_BYTE * stored:
            raise CorruptData(
                f"{self.report.path}: {MARKER} claims {nstep} frames, and the files of the trajectory have {stored} "
                "bytes: its nstep is damaged; mend it in a copy of the record"
            )

    def _why(self, part: str) -> str:
        """The first thing that was found wrong with a part of the trajectory."""
        parent, _, name = f"{ROOT}/{part}".rpartition("/")
        arrays = ("", "/step_index", "/offset", "/vectors", "/origin", "/boundary")
        paths = [*(f"{ROOT}/{part}{array}" for array in arrays), f"{parent}/_validity/{name}"]
        for path in paths:
            why = self.files.bad.get(f"{path}/zarr.json") or first_of(self.log.report.findings, path)
            if why:
                return why
        return "it does not verify"

    # ---- writing -------------------------------------------------------------------------------------------------

    def _write(self, plan: Plan | None) -> None:
        self.files.check_documents()
        others = {key for key, _ in extras(self.store, plan.scan.schema)} if plan else set()
        for key in others:
            self.files.check(key)
        bad = {key: why for key, why in self.files.bad.items() if not key.startswith(f"{ROOT}/") or key in others}
        leave = keys_of(self.store, bad) | set(self.files.bad)
        if plan is None:
            write_group(self.made)
            write_group(os.path.join(self.made, "meta"))
            carry_beside(self.store, self.made, leave)
        else:
            carry(self.store, self.made, plan.scan.schema, write_frames(self.made, plan), leave)
        if not self.store.exists("zarr.json"):
            self.beside.lost["zarr.json"] = "it is not there"
        for path in gone_nodes(self.store):
            self.beside.take_out(path, "its document is gone")
        if self.files.incomplete:
            self.beside.lost[f"{self.report.path}: entries"] = "there may have been others, whose headers are damaged"
            for path in incomplete_arrays(self.store):
                self.beside.take_out(path, "not all of its chunks are there")
        for path, why in bad_nodes(self.store, bad):
            if not self.beside.take_out(path or "zarr.json", why):
                self.beside.lost[path or "zarr.json"] = why

    def _settle(self) -> None:
        """Take out of the copy what does not verify."""
        self.beside.settle()
        if not any(os.path.isdir(os.path.join(self.made, kind)) for kind in KINDS):
            why = "; ".join(f"{path}: {why}" for path, why in self.beside.lost.items())
            raise NotARecord(f"{self.report.path}: nothing of it can be kept: {why}")
        mended = True
        while mended:
            self.report.remaining = verify(self.made).findings
            mended = False
            for finding in self.report.remaining:
                mended |= self._mend(finding)

    def _mend(self, finding: Finding) -> bool:
        """Take out what does not go with the trajectory. False: there is nothing to do about a finding."""
        _, block, column = f"{finding.array}//".split("/")[:3]
        if finding.rule == "system":
            return self.beside.take_out(f"system/{block}", finding.message)
        if finding.rule == "targets" and undeclare_target(self.made, block, column):
            self.beside.lost[f"{ROOT}: targets of {block}/{column}"] = finding.message
            return True
        return False
