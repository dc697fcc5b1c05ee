# SPDX-License-Identifier: BSD-3-Clause
"""Frame-shaped sections, `frame/`, `system/` and `forcefield/`: writing."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mrec import _core
from mrec.box import Box
from mrec.dtypes import CANONICAL, DTYPES, TAGS, check_text, exact_scalar, to_json
from mrec.errors import CorruptData, InvalidValue, NotARecord, SchemaError, UnknownName
from mrec.frame import Block, Frame, checked_shape
from mrec.names import FRAME_BLOCKS, FRAME_COLUMNS, check_new_name, warn_lookalikes
from mrec.record import publish
from mrec.record.references import agreeing, check_referred, check_targets
from mrec.trajectory.coerce import coerce_column
from mrec.trajectory.frames import State, check_beside_system
from mrec.trajectory.infer import infer_column, infer_tag
from mrec.trajectory.schema import Column, checked_precision
from mrec.trajectory.standing import MARKER, read_standing
from mrec.zarr.json import checked
from mrec.zarr.metadata import GroupMeta
from mrec.zarr.store import FilesystemStore
from mrec.zarr.write import codecs_of, write_array, write_group

SECTIONS = ("frame", "system", "forcefield")
#: The section whose document is plain JSON; that of the others is typed.
PLAIN = "forcefield"
#: Of a trajectory, looked at together.
_UPDATES = 64


def write_frame_section(
    directory: str | os.PathLike[str],
    section: str,
    frame: Any,
    *,
    meta: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
) -> None:
    """Write `frame`, `system` or `forcefield` of the record in `directory` from a frame, replacing what is there.

    frame: a Frame, or a mapping of block names to columns. Its blocks (with their precision, structural_shape, targets
    and null rows) and its cell are stored; step, time and per-step values have no place in a section. meta: the
    document (default `frame.meta`); types: the tag of a key whose value does not show it ("json", "u64", "f64x3" ...;
    default `frame.meta_types`). The document of a forcefield is plain JSON, without tags.

    The section appears whole, synced, by one rename, in place of the one that was there. The writer's lock is not taken
    and nothing else is touched, so it may be called while a TrajectoryWriter writes the record. Raises SchemaError for
    what the format has no place for, RecordLocked while another program writes the section, or appends frames that have
    to agree with it.
    """
    root = os.fspath(directory)
    if section not in SECTIONS:
        raise UnknownName(f"{section!r} is no section that is written from a frame; there are: {', '.join(SECTIONS)}")
    if not os.path.isfile(os.path.join(root, "zarr.json")):
        raise NotARecord(f"{root} is no record")
    frame = _as_frame(section, frame)
    _refuse_moment(section, frame)
    document = frame.meta if meta is None else meta
    attributes = _attributes(section, document, {**frame.meta_types, **(types or {})})
    store = FilesystemStore(root)
    with agreeing(root, section, frame.blocks) as writer:
        check_referred(store, section, {name: block.nrows for name, block in frame.blocks.items()})
        if section == "system":
            _check_beside_trajectory(store, writer, frame)
        _publish(store, section, frame, attributes, lambda: check_targets(store, section, frame.blocks, SchemaError))
        if writer is not None and section == "system":
            writer._system_changed()


def write_frame_sections(root: str, given: Mapping[str, Any]) -> None:
    """Write sections of a record that is being made. They may refer to rows of each other."""
    store = FilesystemStore(root)
    frames = {section: _as_frame(section, frame) for section, frame in given.items()}
    for section, frame in frames.items():
        _refuse_moment(section, frame)
        _publish(store, section, frame, _attributes(section, frame.meta, frame.meta_types), lambda: None)
    for section, frame in frames.items():
        check_targets(store, section, frame.blocks, SchemaError)


def _attributes(section: str, document: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    return _plain(document) if section == PLAIN else meta_attributes(document, types)


def _publish(
    store: FilesystemStore, section: str, frame: Frame, attributes: dict[str, Any], check: Callable[[], None]
) -> None:
    """Write a section. check: what is asked of it before it takes its place."""
    with publish.section(store.root, section) as made:
        publish.write_file(os.path.join(made, "zarr.json"), GroupMeta(attributes).document().encode())
        warn_lookalikes(frame.blocks, "block", FRAME_BLOCKS, stacklevel=6)
        for name, block in frame.blocks.items():
            _write_block(made, check_new_name(name, "block", FRAME_BLOCKS), block)
        check()
        if frame.box is not None:
            _write_box(os.path.join(made, "box"), frame.box)


def _as_frame(section: str, given: Any) -> Frame:
    if given is None:
        raise SchemaError(f"{section} takes a Frame, not None; `del record.{section}` takes it out")
    if not isinstance(given, (Frame, Mapping)):
        raise SchemaError(f"{section} takes a Frame, or a mapping of block names to columns, not {given!r}")
    return given if isinstance(given, Frame) else Frame(given)


def _refuse_moment(section: str, frame: Frame) -> None:
    """A section has no place for what belongs to a moment; that of a frame out of a trajectory is left out."""
    if frame.values and frame.index is None:
        raise SchemaError(f"{section}/ has no per-step values; put {', '.join(map(repr, frame.values))} into meta")


# ---- blocks and cell ---------------------------------------------------------------------------------------------


def _write_block(parent: str, name: str, block: Block) -> None:
    path = os.path.join(parent, name)
    attributes: dict[str, Any] = {"count": block.nrows}
    if block.structural_shape is not None:
        shape = checked_shape(block.structural_shape)
        if math.prod(shape) != block.nrows:
            raise SchemaError(f"block {name!r} has {block.nrows} rows, structural_shape {shape} others")
        attributes["structural_shape"] = list(shape)
    if block.targets:
        attributes["targets"] = _checked_targets(name, block)
    unknown = block.precision.keys() - block.keys()
    if unknown:
        raise SchemaError(f"block {name!r} has a precision for {min(unknown)!r}, which is no column of it")
    write_group(path, attributes)
    warn_lookalikes(block, f"column (block {name!r})", FRAME_COLUMNS, stacklevel=7)
    for column, data in block.items():
        check_new_name(column, f"column of block {name!r}", FRAME_COLUMNS)
        _write_column(path, name, column, data, block.precision.get(column))


def _checked_targets(name: str, block: Block) -> dict[str, str]:
    """What the columns of a block refer to; SchemaError for what is no name."""
    for column, target in block.targets.items():
        try:
            for text in (column, target):
                exact_scalar(DTYPES["string"], text)
        except ValueError as e:
            raise SchemaError(f"block {name!r}: targets says {target!r} of {column!r}: {e}") from None
    return dict(block.targets)


def _write_column(path: str, block: str, name: str, data: np.ndarray, precision: float | None) -> None:
    where = f"block {block!r}"
    try:
        dtype = CANONICAL.get(name) or infer_column(data, precision is not None)
    except SchemaError as e:
        raise SchemaError(f"{where}: column {name!r}: {e}") from None
    if precision is not None:
        precision = checked_precision(f"column {name!r} of {where}", dtype, precision)
    if any(n == 0 for n in data.shape[1:]):
        raise SchemaError(f"{where}: column {name!r} has an axis of length 0")
    column = Column(name, dtype, tuple(data.shape[1:]), precision, nullable=True)
    values, valid = coerce_column(column, data, where)
    if dtype.name == "string":  # checked; the strings themselves are easier to chunk
        stored = np.asarray(data, object)
        if valid is not None:
            stored = np.where(valid.reshape(-1, *[1] * (stored.ndim - 1)).astype(bool), stored, "")
    else:
        stored = np.asarray(values, dtype.numpy)
    if precision is not None:
        stored = _core.quantize(stored, precision).reshape(stored.shape)
    codecs = codecs_of(dtype.numpy, rounded=precision is not None)
    attributes = {"precision": precision} if precision is not None else {}
    write_array(os.path.join(path, name), stored, dtype.zarr, codecs, attributes)
    if valid is not None:
        validity = os.path.join(path, "_validity")
        if not os.path.isdir(validity):
            write_group(validity)
        flags = np.dtype(np.bool_)
        write_array(os.path.join(validity, name), valid.astype(flags), "bool", codecs_of(flags))


def _write_box(path: str, box: Box) -> None:
    write_group(path, {} if box.defined else {"cell_defined": False})
    vectors = box.vectors if box.defined else np.eye(3)
    write_array(os.path.join(path, "vectors"), vectors, "float64", codecs_of(vectors.dtype, plain=True))
    if box.origin.tobytes() != np.zeros(3).tobytes():
        write_array(os.path.join(path, "origin"), box.origin, "float64", codecs_of(box.origin.dtype, plain=True))
    if box.defined and not box.periodic.all():
        write_array(os.path.join(path, "boundary"), box.periodic, "bool", codecs_of(box.periodic.dtype, plain=True))


# ---- document ----------------------------------------------------------------------------------------------------


def meta_attributes(meta: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """The attributes that hold a typed document: each value in its JSON form, and `_meta_types`."""
    attributes: dict[str, Any] = {}
    tags: dict[str, str] = {}
    for key, value in meta.items():
        if not isinstance(key, str) or key == "_meta_types":
            raise SchemaError(f"{key!r} can be no key of the document")
        try:
            check_text(key)
        except ValueError as e:
            raise SchemaError(f"a key of the document: {e}") from None
        tags[key] = types[key] if key in types else infer_tag(key, value, "meta key")
        if not isinstance(tags[key], str) or tags[key] not in TAGS:
            raise SchemaError(f"meta key {key!r}: {tags[key]!r} is no type; there are: {', '.join(TAGS)}")
        try:
            attributes[key] = to_json(TAGS[tags[key]], value)
        except ValueError as e:
            raise SchemaError(f"meta key {key!r}: {e}") from None
    return {**attributes, "_meta_types": tags} if tags else {}


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that hold a plain document."""
    if "_meta_types" in document:
        raise SchemaError("'_meta_types' can be no key of the document")
    try:
        return checked(document, "the document")
    except InvalidValue as e:
        raise SchemaError(str(e)) from None


# ---- beside a trajectory -----------------------------------------------------------------------------------------


def _check_beside_trajectory(store: FilesystemStore, writer: Any, system: Frame) -> None:
    """Refuse a system block that does not go with its namesake in the trajectory: the record could not be read."""
    if writer is not None:
        writer.flush(durable=False)  # so that all its frames are looked at
    standing = read_standing(store) if store.exists(MARKER) else None
    if standing is None:
        return
    state = State(standing, store)
    try:
        check_beside_system(state, {name: (block.nrows, set(block)) for name, block in system.blocks.items()})
        _check_ids(state, system)
    except CorruptData as e:
        raise SchemaError(str(e)) from None


def _check_ids(state: State, system: Frame) -> None:
    """The ids of a block are those of its namesake in the system, in every update."""
    for name, block in system.blocks.items():
        form = state.blocks.get(name)
        if form is None or "id" not in block or "id" not in form.schema.columns or not form.n:
            continue
        source, ids = state.arrays.source(f"{name}/id"), np.asarray(block["id"])
        for first in range(0, form.n, _UPDATES):
            last = min(first + _UPDATES, form.n)
            stored = source.read(form.first_row(first), form.first_row(last)).reshape(last - first, block.nrows)
            if not (stored == ids).all():
                raise SchemaError(f"the ids of system/{name} are not those of trajectory/{name}")
