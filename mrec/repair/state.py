# SPDX-License-Identifier: BSD-3-Clause
"""Which state of a damaged trajectory stands, when the marker or the durable file may be damaged too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mrec.errors import CorruptData, MrecError
from mrec.trajectory.schema import Schema
from mrec.verify.files import Files
from mrec.verify.report import Log, Report
from mrec.verify.state import DURABLE, MARKER, State, boot_id, durable_state, find_state, read_token
from mrec.zarr.metadata import parse_group

_UNKNOWN = (
    f"{DURABLE} is damaged, and only it tells what is left if the machine has stopped since the record was last "
    "written. If it has not (that a writer was killed does no harm), say so by --trust-marker (trust_marker=True)"
)


@dataclass(frozen=True)
class Standing:
    """The state that stands, None when nothing says it. notes: what else to know; lost: what is lost by it."""

    state: State | None
    notes: list[str] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)


def standing_state(log: Log, files: Files, trust_marker: bool) -> Standing:
    """The state by what of marker and durable file is whole.

    trust_marker: the machine has not stopped since the record was last written. CorruptData when that has to be known.
    """
    token = durable, marker = read_token(files)
    if durable is None:
        return Standing(find_state(log, files, token))
    whole = durable_state(Log(Report(""), None), durable)
    if whole is None:
        return _without_durable(log, files, durable, marker, trust_marker)
    found = find_state(log, files, token)
    nstep = whole.attributes.get("nstep", 0)
    if found is not None and not found.durable and _declares(found):
        return Standing(found)
    if any(finding.array == MARKER for finding in log.report.findings) or (found and not found.durable):
        why = f"it is damaged; the {nstep} frames of the last durable flush stand, any later ones are lost"
        return Standing(whole, lost={MARKER: why})
    published = _published(marker)
    later = "" if published is None or published <= nstep else f", {published - nstep} later ones were cut"
    return Standing(whole, [f"the machine has stopped since: {nstep} frames were durable{later}"] if later else [])


def _without_durable(log: Log, files: Files, durable: bytes, marker: bytes | None, trust_marker: bool) -> Standing:
    """The state of the marker, when it is known that the system still holds what was written last."""
    durable_state(log, durable)
    boot = boot_id().encode()
    closing = _published(marker) is not None and b'"mrec_nstep"' not in (marker or b"")  # after all was synced
    if not (trust_marker or closing or (boot and boot in durable)):
        raise CorruptData(_UNKNOWN)
    quiet = Log(Report(""), None)
    found = find_state(quiet, files, (None, marker))
    if found is None:
        log.report.findings += quiet.report.findings
        return Standing(None)
    return Standing(replace(found, closed=False), [f"{DURABLE} is damaged; the frames are those of {MARKER}"])


def _published(marker: bytes | None) -> int | None:
    """The frames of a marker; None when it says nothing."""
    try:
        node = parse_group(marker or b"", MARKER)
    except MrecError:
        return None
    found = node.attributes.get("nstep", 0)
    return found if isinstance(found, int) else None


def _declares(state: State) -> bool:
    """Whether the declaration of a state is one."""
    try:
        Schema.from_json(state.attributes.get("sequence_schema", {"blocks": {}}))
    except MrecError:
        return False
    return True
