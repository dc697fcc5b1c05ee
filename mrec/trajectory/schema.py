# SPDX-License-Identifier: BSD-3-Clause
"""What a trajectory declares when it is created: blocks, columns, and per-step values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mrec import dtypes
from mrec.dtypes import CANONICAL, CANONICAL_VALUES, DType, Tag
from mrec.errors import SchemaError
from mrec.names import TRAJECTORY_BLOCKS, TRAJECTORY_COLUMNS, check_name, check_new_name, warn_lookalikes

MAX_TRAILING = 6


class _NoFill:
    def __reduce__(self) -> str:
        return "NO_FILL"

    def __repr__(self) -> str:
        return "NO_FILL"


#: The fill of a per-step value that every frame must give. (None is a fill: JSON's null.)
NO_FILL: Any = _NoFill()


@dataclass(frozen=True)
class Column:
    """One column of a block: `trailing` are the axes after the row axis, `precision` the grid f64 is rounded to."""

    name: str
    dtype: DType
    trailing: tuple[int, ...] = ()
    precision: float | None = None
    nullable: bool = False

    @cached_property
    def takes_f32(self) -> bool:
        """Whether float32 data is taken, by exact widening."""
        return self.dtype.name == "f64" and (self.name in CANONICAL or self.precision is not None)

    def __repr__(self) -> str:
        parts = [str(self.dtype) + "".join(f"[{n}]" for n in self.trailing)]
        parts += [f"precision={self.precision!r}"] if self.precision is not None else []
        parts += ["nullable"] if self.nullable else []
        return f"{self.name} {' '.join(parts)}"

    def to_json(self) -> dict[str, Any]:
        """The entry of `sequence_schema`."""
        document: dict[str, Any] = {"dtype": self.dtype.name, "trailing": list(self.trailing)}
        if self.precision is not None:
            document["precision"] = self.precision
        if self.nullable:
            document["nullable"] = True
        return document


@dataclass
class BlockSchema:
    """One block: `rows` of a typical (the largest) frame, 0 when unknown; `structural_shape` of every update.

    targets: column -> the block whose rows it names; aligned_with: the block that has as many rows at every frame.
    """

    name: str
    columns: dict[str, Column] = field(default_factory=dict)
    rows: int = 0
    structural_shape: tuple[int, ...] | None = None
    targets: dict[str, str] | None = None
    aligned_with: str | None = None

    def __repr__(self) -> str:
        shape = f" as {self.structural_shape}" if self.structural_shape else ""
        rows = f" ({self.rows} rows{shape})" if self.rows else ""
        return f"{self.name!r}{rows}: {', '.join(map(repr, self.columns.values())) or 'no columns'}"

    def together(self, name: str) -> tuple[str, ...]:
        """The columns that a name stands for: its own, or "xyz" for x, y and z where no column is called so."""
        if name not in self.columns and len(name) > 1 and all(letter in self.columns for letter in name):
            return tuple(name)
        return (name,)

    def to_json(self) -> dict[str, Any]:
        """The entry of `sequence_schema`."""
        document: dict[str, Any] = {"columns": {name: column.to_json() for name, column in self.columns.items()}}
        if self.structural_shape is not None:
            document["structural_shape"] = list(self.structural_shape)
        if self.targets is not None:
            document["targets"] = dict(self.targets)
        if self.aligned_with is not None:
            document["aligned_with"] = self.aligned_with
        return document


@dataclass(frozen=True)
class ValueSchema:
    """One per-step value. `fill` is what a frame that omits it gets, NO_FILL when every frame must give it.

    A vector's fill is a tuple.
    """

    name: str
    tag: Tag
    fill: Any = NO_FILL

    @property
    def has_fill(self) -> bool:
        """Whether a frame may omit the value."""
        return self.fill is not NO_FILL

    @cached_property
    def fill_json(self) -> str | None:
        """The fill in typed JSON form, as text; None when there is none."""
        return dtypes.json_text(dtypes.to_json(self.tag, self.fill)) if self.has_fill else None

    @cached_property
    def as_column(self) -> Column:
        """The column whose rows are the frames."""
        return Column(self.name, self.tag.dtype, () if self.tag.width == 1 else (self.tag.width,))

    def __repr__(self) -> str:
        return f"{self.name} {self.tag}" + (f" fill={self.fill!r}" if self.has_fill else "")

    def to_json(self) -> dict[str, Any]:
        """The entry of `sequence_schema`."""
        document: dict[str, Any] = {"dtype": self.tag.name}
        if self.has_fill:
            document["fill"] = dtypes.to_json(self.tag, self.fill)
        return document


class Schema:
    """The declaration of a trajectory, built column by column or from a frame.

    >>> schema = (
    ...     Schema()
    ...     .block("atoms", rows=1000)
    ...     .column("x", "f64", precision=1e-3)
    ...     .column("id", "u64")
    ...     .value("pe", "f64")
    ... )
    >>> list(schema.blocks["atoms"].columns)
    ['x', 'id']

    blocks: name -> BlockSchema. values: name -> ValueSchema. Two schemas are equal when they declare the same.
    """

    def __init__(self) -> None:
        self.blocks: dict[str, BlockSchema] = {}
        self.values: dict[str, ValueSchema] = {}
        self._current: BlockSchema | None = None

    # ---- building ------------------------------------------------------------------------------------------------

    def block(
        self,
        name: str,
        *,
        rows: int = 0,
        structural_shape: Sequence[int] | None = None,
        targets: Mapping[str, str] | None = None,
        aligned_with: str | None = None,
    ) -> Schema:
        """Declare a block; the `column` calls that follow fill it. Returns the schema.

        rows: of a typical (the largest) frame; it decides how many frames share a chunk. structural_shape: every update
        is a grid of this shape, flattened, and has exactly its number of rows. targets: column -> the block whose rows
        it names, one of this trajectory or "/<section>/<block>"; the column is u64, and each value that is not null is
        below the rows the target has in the same frame. aligned_with: another block, which at every frame where this
        one is present has the same number of rows, and no column of the same name.
        """
        check_name(name, "block", TRAJECTORY_BLOCKS)
        if name in self.blocks:
            raise SchemaError(f"block {name!r} is declared twice; declare all its columns after one .block() call")
        if targets is not None:
            targets = _targets_of(targets, f"targets of block {name!r}")
        if aligned_with is not None:
            check_name(aligned_with, f"block that {name!r} is aligned with", TRAJECTORY_BLOCKS)
        shape = None if structural_shape is None else _extents(structural_shape, f"structural_shape of block {name!r}")
        rows = _count(rows, f"rows of block {name!r}")
        if shape is not None:
            if rows not in (0, math.prod(shape)):
                raise SchemaError(f"block {name!r} has {rows} rows, but its structural_shape {shape} another number")
            rows = math.prod(shape)
        warn_lookalikes([*self.blocks, name], "block", TRAJECTORY_BLOCKS)
        self._current = self.blocks[name] = BlockSchema(
            name,
            rows=rows,
            structural_shape=shape,
            targets=dict(targets) if targets else None,
            aligned_with=aligned_with,
        )
        return self

    def column(
        self,
        name: str,
        dtype: Any,
        *,
        precision: float | None = None,
        trailing: int | Sequence[int] = (),
        nullable: bool = False,
    ) -> Schema:
        """Declare a column of the block that the last `block` call began. Returns the schema.

        dtype: "f64", "float64", np.float64 ...; trailing: lengths of the axes after the row axis; nullable: rows may be
        null (masked). precision, f64 only: values are stored rounded to the grid of the largest power of two not above
        it, so that each is off by at most half of `precision`.
        """
        block = self._current
        if block is None:
            raise SchemaError(f"column {name!r} belongs to no block; call .block(name) first")
        column = _column(block.name, name, dtype, precision, trailing, nullable)
        if name in block.columns:
            raise SchemaError(f"column {name!r} of block {block.name!r} is declared twice")
        if name in CANONICAL and column.dtype != CANONICAL[name]:
            raise SchemaError(_not_canonical(block.name, column))
        warn_lookalikes([*block.columns, name], f"column (block {block.name!r})", TRAJECTORY_COLUMNS)
        block.columns[name] = column
        return self

    def value(self, name: str, dtype: Any, *, fill: Any = NO_FILL) -> Schema:
        """Declare a per-step value. Returns the schema.

        dtype: one of the sixteen tags (bool i32 i64 u32 u64 f64 string json bool3 i32x3 i64x3 u32x3 u64x3 f64x3 f64x6
        f64x9) or another name of a scalar one. fill: what a frame that omits it gets; without one every frame gives it.
        """
        check_name(name, "per-step value")
        if name in self.values:
            raise SchemaError(f"per-step value {name!r} is declared twice")
        value = _value(name, dtype, fill)
        if name in CANONICAL_VALUES and value.tag.name != "f64":
            raise SchemaError(f"per-step value {name!r} is f64 wherever it appears, not {value.tag}")
        warn_lookalikes([*self.values, name], "per-step value")
        self.values[name] = value
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        precision: float | Mapping[str, float] | None = None,
        nullable: Iterable[str] = (),
        values: Mapping[str, Any] | None = None,
    ) -> Schema:
        """The declaration that fits a frame: a Frame, or a mapping of block names to mappings of arrays.

        precision: for the columns x, y, z, or by column name. nullable: columns that may have null rows in later
        frames; a masked array says so itself. values: per-step values beside those of the frame; of each, the type
        is what one value shows (declare with `.value` for a fill or another type).
        """
        from mrec.trajectory.infer import schema_of

        return schema_of(cls(), frame, precision, nullable, values or {})

    # ---- JSON ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The `sequence_schema` attribute."""
        return {
            "blocks": {name: block.to_json() for name, block in self.blocks.items()},
            "meta": {name: value.to_json() for name, value in self.values.items()},
        }

    @classmethod
    def from_json(cls, document: Any) -> Schema:
        """The declaration in a `sequence_schema` attribute; SchemaError when it does not follow the format."""
        schema = cls()
        blocks, values = _members(document, "sequence_schema", {"blocks"}, {"meta"})
        for name, entry in _members_of(blocks, "blocks"):
            schema.blocks[check_name(name, "block", TRAJECTORY_BLOCKS)] = _block_from_json(name, entry)
        for name, entry in _members_of({} if values is None else values, "meta"):
            schema.values[check_name(name, "per-step value")] = _value_from_json(name, entry)
        return schema

    def check_writable(self) -> None:
        """SchemaError when what blocks say of each other cannot hold, or a name is one that a writer uses itself."""
        for block in self.blocks.values():
            _check_targets(self, block)
            _check_aligned(self, block)
        for name, block in self.blocks.items():
            check_new_name(name, "block")
            for column in block.columns:
                check_new_name(column, f"column of block {name!r}")
        for name in self.values:
            check_new_name(name, "per-step value")

    def copy(self) -> Schema:
        """An independent schema that declares the same."""
        other = Schema.from_json(self.to_json())
        for name, block in self.blocks.items():
            other.blocks[name].rows = block.rows
        return other

    # ---- as a value ----------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return json.dumps(self.to_json(), sort_keys=True) == json.dumps(other.to_json(), sort_keys=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = [f"  {block!r}" for block in self.blocks.values()]
        lines += [f"  per step: {', '.join(map(repr, self.values.values()))}"] if self.values else []
        return "\n".join(["<Schema:", *lines]) + ">" if lines else "<Schema: nothing declared>"


# ---- checks ------------------------------------------------------------------------------------------------------


def _column(block: str, name: Any, dtype: Any, precision: Any, trailing: Any, nullable: Any) -> Column:
    where = f"column {name!r} of block {block!r}"
    check_name(name, f"column of block {block!r}", TRAJECTORY_COLUMNS)
    try:
        kind = dtypes.column_type(dtype)
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    axes = _extents((trailing,) if isinstance(trailing, int) else trailing, f"trailing of {where}", empty=True)
    if len(axes) > MAX_TRAILING:
        raise SchemaError(f"{where} has {len(axes)} trailing axes, at most {MAX_TRAILING} are supported")
    if not isinstance(nullable, bool):
        raise SchemaError(f"nullable of {where} is True or False, not {nullable!r}")
    return Column(name, kind, axes, None if precision is None else checked_precision(where, kind, precision), nullable)


def checked_precision(where: str, dtype: DType, precision: Any) -> float:
    """The precision of a column, when it may have that one; else SchemaError, in which `where` names the column."""
    if dtype.name != "f64":
        raise SchemaError(f"{where} is {dtype}; only f64 columns have a precision")
    try:
        p = dtypes.exact_scalar(dtype, precision)
    except ValueError as e:
        raise SchemaError(f"the precision of {where} is a number: {e}") from None
    if not 2.0**-1000 <= p <= 2.0**1000:
        raise SchemaError(
            f"the precision of {where} lies between 2^-1000 and 2^1000, not {p!r}; leave it out to store f64"
        )
    return float(p)


def _extents(shape: Any, what: str, empty: bool = False) -> tuple[int, ...]:
    try:
        extents = tuple(_count(n, what, 1) for n in shape)
    except TypeError:
        raise SchemaError(f"{what} is a list of lengths, not {shape!r}") from None
    if not extents and not empty:
        raise SchemaError(f"{what} names at least one axis; leave it out for none")
    if math.prod(extents) >= 2**63:
        raise SchemaError(f"{what} {extents} is too large")
    return extents


def _targets_of(targets: Any, what: str) -> dict[str, str]:
    if not isinstance(targets, Mapping) or not all(isinstance(text, str) for pair in targets.items() for text in pair):
        raise SchemaError(f"{what} is an object of names, not {targets!r}")
    return dict(targets)


def _check_targets(schema: Schema, block: BlockSchema) -> None:
    for column, target in (block.targets or {}).items():
        where = f"block {block.name!r}: targets says that {column!r} refers to {target!r}"
        declared = block.columns.get(column)
        if declared is None:
            raise SchemaError(f"{where}, and there is no such column")
        if declared.dtype.name != "u64":
            raise SchemaError(f"{where}, and it is {declared.dtype}; a reference is u64")
        if target.startswith("/"):
            section, _, name = target[1:].partition("/")
            if not section or not name or "/" in name or section == "trajectory":
                raise SchemaError(f'{where}; a target is a block of the trajectory, or "/<section>/<block>" of another')
        elif target not in schema.blocks:
            raise SchemaError(f"{where}, which is no declared block")


def _check_aligned(schema: Schema, block: BlockSchema) -> None:
    if block.aligned_with is None:
        return
    where = f"block {block.name!r} is aligned with {block.aligned_with!r}"
    other = schema.blocks.get(block.aligned_with)
    if other is None or other is block:
        raise SchemaError(f"{where}, which is no other declared block")
    if other.aligned_with is not None:
        raise SchemaError(f"{where}, which is aligned itself; align both with {other.aligned_with!r}")
    if block.structural_shape is not None:
        raise SchemaError(f"{where}, so it has no structural_shape of its own")
    shared = sorted(block.columns.keys() & other.columns.keys())
    if shared:
        raise SchemaError(f"{where}, and both have a column {shared[0]!r}; name one of them otherwise")


def _count(n: Any, what: str, least: int = 0) -> int:
    try:
        n = dtypes.exact_scalar(dtypes.DTYPES["i64"], n)
    except ValueError:
        n = None
    if n is None or n < least:
        raise SchemaError(f"{what}: every length is an integer of at least {least}")
    return int(n)


def _not_canonical(block: str, column: Column) -> str:
    right = CANONICAL[column.name]
    return (
        f"column {column.name!r} of block {block!r} is {right} wherever it appears, not {column.dtype}; "
        "declare it so, or choose another name"
    )


def _value(name: str, dtype: Any, fill: Any) -> ValueSchema:
    try:
        tag = dtypes.value_tag(dtype)
    except SchemaError as e:
        raise SchemaError(f"per-step value {name!r}: {e}") from None
    if fill is NO_FILL:
        return ValueSchema(name, tag)
    try:
        return ValueSchema(name, tag, _fill(tag, dtypes.to_json(tag, fill)))
    except ValueError as e:
        raise SchemaError(f"the fill of per-step value {name!r}: {e}") from None


def _fill(tag: Tag, document: Any) -> Any:
    fill = dtypes.from_json(tag, document)
    return fill if tag.width == 1 else tuple(fill.tolist())


# ---- reading a declaration ---------------------------------------------------------------------------------------


def _members(document: Any, what: str, required: set[str], optional: set[str]) -> list[Any]:
    """The values of a JSON object's members, those of `required` and then of `optional`, None for one left out."""
    if not isinstance(document, dict):
        raise SchemaError(f"{what} is a JSON object, not {document!r}")
    for key in document:
        if key not in required and key not in optional:
            raise SchemaError(f"{what} has a member {key!r}, which this version of the format does not know")
    for key in sorted(required):
        if key not in document:
            raise SchemaError(f"{what} has no member {key!r}")
    return [document.get(key) for key in sorted(required)] + [document.get(key) for key in sorted(optional)]


def _members_of(document: Any, what: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(document, dict):
        raise SchemaError(f"{what} of sequence_schema is a JSON object, not {document!r}")
    return document.items()


def _block_from_json(name: str, entry: Any) -> BlockSchema:
    what = f"block {name!r} of sequence_schema"
    columns, aligned, shape, targets = _members(
        entry, what, {"columns"}, {"aligned_with", "structural_shape", "targets"}
    )
    block = BlockSchema(name, targets=targets, aligned_with=aligned)
    for column, declared in _members_of(columns, f"columns of block {name!r}"):
        block.columns[column] = _column_from_json(name, column, declared)
    if shape is not None:
        block.structural_shape = _extents(shape, f"structural_shape of block {name!r}")
        block.rows = math.prod(block.structural_shape)
    if targets is not None:
        _targets_of(targets, f"targets of {what}")
    if aligned is not None and not isinstance(aligned, str):
        raise SchemaError(f"aligned_with of {what} is a name, not {aligned!r}")
    return block


def _column_from_json(block: str, name: str, entry: Any) -> Column:
    what = f"column {name!r} of block {block!r}"
    dtype, nullable, precision, trailing = _members(entry, what, {"dtype"}, {"nullable", "precision", "trailing"})
    if not isinstance(dtype, str) or dtype not in dtypes.DTYPES:
        raise SchemaError(f"{what} is declared {dtype!r}, which is no column type")
    column = _column(
        block, name, dtype, precision, () if trailing is None else trailing, False if nullable is None else nullable
    )
    if name in CANONICAL and CANONICAL[name].name == "u64" and dtype != "u64":
        raise SchemaError(_not_canonical(block, column))
    return column


def _value_from_json(name: str, entry: Any) -> ValueSchema:
    what = f"per-step value {name!r}"
    dtype, _ = _members(entry, what, {"dtype"}, {"fill"})
    tag = dtypes.TAGS.get(dtype) if isinstance(dtype, str) else None
    if tag is None:
        raise SchemaError(f"{what} is declared {dtype!r}, which is no type of a per-step value")
    if "fill" not in entry:
        return ValueSchema(name, tag)
    try:
        return ValueSchema(name, tag, _fill(tag, entry["fill"]))
    except ValueError as e:
        raise SchemaError(f"the fill of {what}: {e}") from None
