# SPDX-License-Identifier: BSD-3-Clause
"""Which state of a trajectory is to be checked, and whether its marker and durable file are as they have to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrec.errors import CorruptData, MrecError, NotARecord
from mrec.verify.chunks import Fault, tail_bytes
from mrec.verify.files import Files
from mrec.verify.report import Log
from mrec.zarr.codecs import is_int
from mrec.zarr.json import parse_object
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node

MARKER = "trajectory/zarr.json"
DURABLE = "trajectory/.durable"

Node = ArrayMeta | GroupMeta
Token = tuple[bytes | None, bytes | None]


@dataclass
class State:
    """The state that stands. get: the text of a document. closed: there is no durable file.

    durable: the durable file stands, not the marker. complete: every chunk was stored by mrec, as far as is known.
    """

    attributes: dict[str, Any]
    get: Callable[[str], bytes | str | None]
    closed: bool
    durable: bool = False
    complete: bool = False
    tails: dict[str, tuple[int, ...]] = field(default_factory=dict)


def read_token(files: Files) -> Token:
    """Durable file and marker; in this order a marker older than the durable file was really so."""
    durable = files.get(DURABLE)
    return durable, files.get(MARKER)


def find_state(log: Log, files: Files, token: Token) -> State | None:
    """The state that stands; None when what is there says nothing. NotARecord: it is still being created."""
    durable = None if token[0] is None else _durable(log, token[0])
    marker = _marker(log, token, durable)
    if durable is None or _marker_stands(marker, durable):
        if marker is None:
            return None
        if durable is not None and durable["nstep"] == marker.get("nstep", 0):
            _all_there(log, files, durable["documents"])
        written = marker.get("nstep", 0) == marker.get("mrec_nstep")
        complete = durable is not None and durable["complete"] and written
        return State(marker, files.get, closed=token[0] is None, complete=complete)
    return _durable_state(log, durable)


def _all_there(log: Log, files: Files, documents: dict[str, Any]) -> None:
    """Nothing landed since the durable file was written, so each document that it holds is there."""
    for path in documents:
        if files.get(path) is None:
            log.add("document", path, "it is not there, and .durable has it")


def durable_state(log: Log, raw: bytes) -> State | None:
    """The state of a durable file; None when it is damaged, which includes that it contradicts itself."""
    durable = _durable(log, raw)
    found = None if durable is None else _durable_state(log, durable)
    if found is None or durable is None or found.attributes.get("nstep", 0) != durable["nstep"]:
        return None
    return found


def _durable_state(log: Log, durable: dict[str, Any]) -> State | None:
    documents = durable["documents"]
    own = _node(log, documents[MARKER], MARKER)
    if not isinstance(own, GroupMeta) or not _counts(log, "durable", DURABLE, own.attributes):
        return None
    tails = {path: tuple(tail) for path, tail in durable["tails"].items()}
    return State(own.attributes, documents.get, False, True, durable["complete"], tails)


# ---- marker ------------------------------------------------------------------------------------------------------


def _marker(log: Log, token: Token, durable: dict[str, Any] | None) -> dict[str, Any] | None:
    """The marker's attributes; None when it is not there, or is what a power loss left of it."""
    lost_power = durable is not None and durable["boot_id"] != boot_id()
    if token[1] is None:
        if token[0] is not None and not lost_power:
            if durable is None or durable["nstep"] == 0:
                raise NotARecord(f"{MARKER} is not there: the record is still being created, or its creation failed")
            log.add("document", MARKER, f"it is not there, and .durable has {durable['nstep']} frames")
        if token[0] is None:
            log.add("document", MARKER, "it is not there")
        return None
    try:
        node = parse_node(token[1], MARKER)
    except MrecError as e:
        if not lost_power:
            log.add("document", MARKER, str(e))
        return None
    if not isinstance(node, GroupMeta):
        log.add("document", MARKER, "an array stands where a group has to be")
        return None
    if not _counts(log, "marker", MARKER, node.attributes):
        return None
    if token[0] is None and "mrec_nstep" in node.attributes:
        log.add("marker", MARKER, "mrec_nstep stands in a record without .durable; closing takes it out first")
    return node.attributes


def _counts(log: Log, rule: str, path: str, attributes: dict[str, Any]) -> bool:
    """Whether what stands for a number of frames is one."""
    for key in ("nstep", "mrec_nstep"):
        if key in attributes and not is_int(attributes[key], 0, 2**63 - 1):
            log.add(rule, path, f"{key} is {attributes[key]!r}, no number of frames")
            return False
    for key in ("step_progression", "time_progression"):
        if key in attributes and "nstep" not in attributes:
            log.add(rule, path, f"{key} stands without nstep")
    return True


def _marker_stands(marker: dict[str, Any] | None, durable: dict[str, Any]) -> bool:
    if marker is None or durable["nstep"] > marker.get("nstep", 0):
        return False
    if durable["boot_id"] == boot_id():
        return True
    return bool(marker.get("nstep", 0) > durable["nstep"] and marker.get("nstep") != marker.get("mrec_nstep"))


def boot_id() -> str:
    """What the system calls the time since its start; "" where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


# ---- durable file ------------------------------------------------------------------------------------------------


def _durable(log: Log, raw: bytes) -> dict[str, Any] | None:
    """The durable file, when it has the form it has to have."""
    try:
        found = parse_object(raw, DURABLE)
    except MrecError as e:
        log.add("durable", DURABLE, str(e))
        return None
    tails, documents = found.get("tails"), found.get("documents")
    right = {
        "format": is_int(found.get("format"), 1, 1),
        "boot_id": isinstance(found.get("boot_id"), str),
        "nstep": is_int(found.get("nstep"), 0, 2**63 - 1),
        "complete": isinstance(found.get("complete"), bool),
        "documents": isinstance(documents, dict) and all(isinstance(text, str) for text in documents.values()),
        "tails": isinstance(tails, dict) and all(map(_is_tail, tails.values())),
        "a name": all(_is_inside(name) for names in (documents, tails) if isinstance(names, dict) for name in names),
    }
    wrong = [key for key, fits in right.items() if not fits]
    for key in wrong:
        what = "outside of the trajectory" if key == "a name" else repr(str(found.get(key))[:60])
        log.add("durable", DURABLE, f"{key} is {what}")
    if not wrong and MARKER not in documents:  # type: ignore[operator]
        log.add("durable", DURABLE, f"it has no document {MARKER}")
        return None
    return None if wrong else found


def _is_inside(name: str) -> bool:
    first, *rest = name.split("/")
    return first == "trajectory" and bool(rest) and not {"", ".", ".."} & set(rest) and "\0" not in name


def _is_tail(tail: Any) -> bool:
    if not isinstance(tail, list) or len(tail) != 5:
        return False
    *place, crc = tail
    return all(is_int(n, 0, 2**63 - 1) for n in place) and is_int(crc, 0, 2**32 - 1)


def _node(log: Log, text: bytes | str, path: str) -> Node | None:
    try:
        node = parse_node(text, path)
        if isinstance(node, ArrayMeta):
            _ = node.chain  # its codecs may be unknown
            if path.count("/") < 2 or not node.shape:
                raise CorruptData(f"{path}: an array stands where none can be")
        return node
    except MrecError as e:
        log.add("durable", DURABLE, f"its document {e}")
        return None


def check_durable(log: Log, files: Files, token: Token) -> None:
    """What has to hold for a durable file whichever state stands: exact shapes, and tails that are there."""
    found = None if token[0] is None else _durable(log, token[0])
    if found is None:
        return
    nodes = {
        key.removesuffix("/zarr.json"): node
        for key, text in found["documents"].items()
        if (node := _node(log, text, key)) is not None
    }
    root = nodes.get("trajectory")
    if isinstance(root, GroupMeta) and root.attributes.get("nstep", 0) != found["nstep"]:
        log.add("durable", DURABLE, f"nstep is {found['nstep']}, in its marker {root.attributes.get('nstep')!r}")
    else:
        _check_shapes(log, nodes, found["nstep"])
    for path, tail in found["tails"].items():
        _check_tail(log, files, path, nodes.get(path), tail)
    for path, node in nodes.items():
        if isinstance(node, ArrayMeta) and node.shape[0] and found["complete"] and path not in found["tails"]:
            log.add("durable-tail", path, ".durable does not say where its last chunk is")


def _check_tail(log: Log, files: Files, path: str, meta: Node | None, tail: list[int]) -> None:
    file, chunk = tail[:2]
    if not isinstance(meta, ArrayMeta) or meta.shape[0] == 0 or meta.chain.shard is None:
        log.add("durable-tail", path, ".durable has a tail for it and no rows of it")
        return
    extent = meta.chain.shard.chunk_shape[meta.chain.order.index(0)]
    last = (meta.shape[0] - 1) // extent
    per = meta.grid[0] // extent
    if (file, chunk) != (last // per, last % per):
        log.add("durable-tail", path, f".durable names chunk {chunk} of shard {file}, which is not its last")
    key = "/".join(["c", str(file), *["0"] * (len(meta.shape) - 1)])
    try:
        tail_bytes(files.open(f"{path}/{key}"), tail, meta.chain)
    except Fault as fault:
        log.add(fault.rule, path, str(fault), shard=key, chunk=chunk)


def _check_shapes(log: Log, nodes: dict[str, Node], nstep: int) -> None:
    """The lengths in the documents of one durable state fit each other exactly."""
    blocks: dict[str, dict[str, int]] = {}
    for path, node in nodes.items():
        if not isinstance(node, ArrayMeta):
            continue
        _, block, *rest = path.split("/")
        if not rest or block == "meta":
            if node.shape[:1] != (nstep,):
                log.add("durable-shape", path, f"it has {node.shape[0]} rows in .durable, which has {nstep} frames")
        else:
            blocks.setdefault(block, {})["/".join(rest)] = node.shape[0]
    for block, lengths in blocks.items():
        group = nodes.get(f"trajectory/{block}")
        uniform = group.attributes.get("uniform_rows") if isinstance(group, GroupMeta) else None
        for message in _misfits(block, lengths, uniform, nstep):
            log.add("durable-shape", f"trajectory/{block}", message)


def _misfits(block: str, lengths: dict[str, int], uniform: Any, nstep: int) -> list[str]:
    updates, offset = lengths.pop("step_index", None), lengths.pop("offset", None)
    found = []
    if len(set(lengths.values())) > 1:
        found.append(f"in .durable its arrays have {', '.join(f'{n} rows ({p})' for p, n in lengths.items())}")
    if block != "box" and updates is not None and offset != updates + 1:
        found.append(f"in .durable step_index has {updates} entries and offset {offset}")
    if block == "box" and updates is not None and lengths and updates != max(lengths.values()):
        found.append(f"in .durable step_index has {updates} entries and the cells are {max(lengths.values())}")
    if updates is not None and updates > nstep:
        found.append(f"in .durable it has {updates} updates in {nstep} frames")
    rows = max(lengths.values(), default=0)
    if is_int(uniform, 1, math.inf) and (rows % uniform or rows > uniform * nstep):  # type: ignore[arg-type]
        found.append(f"in .durable it has {rows} rows, which are no {uniform} in each of at most {nstep} frames")
    return found
