# SPDX-License-Identifier: BSD-3-Clause
"""One frame: named blocks of columns, a cell, a step, a time, and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

import numpy as np

from mrec.arrays import array_of
from mrec.box import Box
from mrec.errors import SchemaError, UnknownName

Array = np.ndarray


class Block(MutableMapping[str, Array]):
    """Columns of equal length by name, as a dict of arrays.

    A column is a numpy array whose first axis is the row; a masked array has null rows where it is masked.
    nrows: needed only for a block without columns. structural_shape: the rows are a grid of this shape, flattened.
    precision: column name -> the grid its values were or will be rounded to. targets: column name -> the block whose
    rows it names ("atoms", or "/system/atoms" in another section); such a column is u64.

    >>> atoms = Block({"x": [0.0, 1.0], "element": ["O", "H"]})
    >>> atoms.nrows, atoms["x"].dtype.name
    (2, 'float64')
    """

    __slots__ = ("_columns", "_nrows", "precision", "structural_shape", "targets")

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        nrows: int | None = None,
        structural_shape: tuple[int, ...] | None = None,
        precision: Mapping[str, float] | None = None,
        targets: Mapping[str, str] | None = None,
    ) -> None:
        self._columns: dict[str, Array] = {}
        self._nrows = None if nrows is None else checked_rows(nrows, "nrows")
        self.structural_shape = None if structural_shape is None else checked_shape(structural_shape)
        self.precision = dict(precision or {})
        self.targets = dict(targets or {})
        for name, values in (columns or {}).items():
            self[name] = values

    @classmethod
    def _made(
        cls,
        columns: dict[str, Array],
        nrows: int,
        shape: tuple[int, ...] | None,
        precision: Mapping[str, float],
        targets: Mapping[str, str] | None = None,
    ) -> Block:
        """From parts that are known to fit; takes the dict over."""
        block = object.__new__(cls)
        block._columns = columns
        block._nrows = nrows
        block.structural_shape = shape
        block.precision = dict(precision)
        block.targets = dict(targets) if targets else {}
        return block

    def copy(self) -> Block:
        """An independent block: its arrays are copies."""
        columns = {name: values.copy() for name, values in self._columns.items()}
        return Block._made(columns, self.nrows, self.structural_shape, self.precision, self.targets)

    @property
    def nrows(self) -> int:
        """The number of rows."""
        return self._nrows or 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> Array:
        if isinstance(name, list):
            raise UnknownName(f"columns come one by one, not as {name!r}; Trajectory.read(block, columns) stacks them")
        try:
            return self._columns[name]
        except KeyError:
            raise UnknownName(f"there is no column {name!r}; there are: {_listed(self._columns)}") from None

    def __setitem__(self, name: str, values: Any) -> None:
        if not isinstance(name, str):
            raise SchemaError(f"the name of a column is a string, not {name!r}")
        array = as_column(values, f"column {name!r}")
        if array.ndim == 0:
            raise SchemaError(f"column {name!r} takes one value a row, not the single value {values!r}")
        others = self._columns.keys() - {name}
        fixed = bool(others) or (self._nrows is not None and not self._columns)
        if fixed and len(array) != self._nrows:
            raise SchemaError(f"column {name!r} has {len(array)} rows, the block has {self._nrows}")
        self._nrows = len(array)
        self._columns[name] = array

    def __delitem__(self, name: str) -> None:
        self[name]
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __eq__(self, other: object) -> bool:
        """The same rows and columns, bit for bit (NaN equals the same NaN, -0.0 is not 0.0); null rows are alike."""
        if not isinstance(other, Block):
            return NotImplemented
        if self.nrows != other.nrows or self.keys() != other.keys():
            return False
        return all(same_bits(self[name], other[name]) for name in self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from mrec.display import counted

        rows = counted(self.nrows, "row")
        return f"<Block {rows}: {', '.join(f'{name} {_described(self[name])}' for name in self) or 'no columns'}>"

    def _repr_html_(self) -> str:
        from mrec.display import block_html

        return block_html(self)


class Frame:
    """A frame of a trajectory, or a single snapshot.

    blocks: name -> Block (a mapping of arrays is made one). step: int. time: float. box: a Box, or what `Box.coerce`
    takes; None: no statement about a cell. values: per-step values by name. meta: the document of a snapshot.
    meta_types: the tags of keys of `meta` whose values do not show them ("i32", "json", "f64x3" ...), and of all keys
    of a snapshot that was read. index: the ordinal in the trajectory it came from.

    `frame["atoms"]`, `"atoms" in frame`, `len(frame)` and iteration are about its blocks.

    >>> frame = Frame({"atoms": {"x": [0.0, 1.0]}}, step=5, values={"pe": -1.5})
    >>> frame["atoms"].nrows, frame.values["pe"]
    (2, -1.5)
    """

    __slots__ = ("_box", "blocks", "index", "meta", "meta_types", "step", "time", "values")

    def __init__(
        self,
        blocks: Mapping[str, Any] | None = None,
        *,
        step: int | None = None,
        time: float | None = None,
        box: Any = None,
        values: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        meta_types: Mapping[str, str] | None = None,
        index: int | None = None,
    ) -> None:
        self.blocks: dict[str, Block] = {name: _as_block(name, block) for name, block in (blocks or {}).items()}
        self.step = step
        self.time = time
        self.box = box
        self.values: dict[str, Any] = dict(values or {})
        self.meta: dict[str, Any] = dict(meta or {})
        self.meta_types: dict[str, str] = dict(meta_types or {})
        self.index = index

    @classmethod
    def _made(
        cls,
        blocks: dict[str, Block],
        step: int | None,
        time: float | None,
        box: Box | None,
        values: dict[str, Any],
        index: int | None,
    ) -> Frame:
        """From parts that are known to fit; takes the dicts over."""
        frame = object.__new__(cls)
        frame.blocks = blocks
        frame.step = step
        frame.time = time
        frame._box = box
        frame.values = values
        frame.meta = {}
        frame.meta_types = {}
        frame.index = index
        return frame

    @property
    def box(self) -> Box | None:
        """The cell; None: no statement about one. What is assigned becomes a Box, as of `Box.coerce`."""
        return self._box

    @box.setter
    def box(self, box: Any) -> None:
        self._box = None if box is None else Box.coerce(box)

    def __getitem__(self, name: str) -> Block:
        try:
            return self.blocks[name]
        except KeyError:
            raise UnknownName(f"there is no block {name!r}; there are: {_listed(self.blocks)}") from None

    def __setitem__(self, name: str, block: Any) -> None:
        self.blocks[name] = _as_block(name, block)

    def __delitem__(self, name: str) -> None:
        self[name]
        del self.blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __contains__(self, name: object) -> bool:
        return name in self.blocks

    def keys(self) -> Any:
        """The names of the blocks."""
        return self.blocks.keys()

    def items(self) -> Any:
        """The blocks with their names. (The blocks alone are `frame.blocks.values()`; `values` are per-step values.)"""
        return self.blocks.items()

    def get(self, name: str, default: Any = None) -> Any:
        """A block, or `default` when there is none of that name."""
        return self.blocks.get(name, default)

    def copy(self) -> Frame:
        """An independent frame: blocks, values and documents are copies."""
        return deepcopy(self)

    def __eq__(self, other: object) -> bool:
        """The same step, time, cell, blocks, values and meta, bit for bit; the index does not count."""
        if not isinstance(other, Frame):
            return NotImplemented
        return (
            self.step == other.step
            and _same_value(self.time, other.time)
            and self.box == other.box
            and self.blocks == other.blocks
            and _same_values(self.values, other.values)
            and _same_values(self.meta, other.meta)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"{key}={value}" for key in ("index", "step", "time") if (value := getattr(self, key)) is not None]
        parts += [f"{name}={value!r}" for name, value in self.values.items() if isinstance(value, (bool, int, float))]
        parts += [repr(self.box)] if self.box is not None else []
        lines = [f"  {name!r}: {block!r}" for name, block in self.blocks.items()]
        return "\n".join([f"<Frame {', '.join(parts)}".rstrip() + (":" if lines else ""), *lines]) + ">"

    def _repr_html_(self) -> str:
        from mrec.display import frame_html

        return frame_html(self)


def _as_block(name: str, block: Any) -> Block:
    if not isinstance(name, str):
        raise SchemaError(f"the name of a block is a string, not {name!r}")
    if isinstance(block, Block):
        return block
    if isinstance(block, Mapping):
        return Block(block)
    raise SchemaError(f"block {name!r} takes a Block or a mapping of column names to arrays, not {block!r}")


def as_column(values: Any, what: str) -> np.ndarray:
    """Values as an array; strings in a list as StringDType, which keeps NULs at their ends. SchemaError for none."""
    try:
        array = array_of(values)
        if array.dtype.kind == "U" and not hasattr(values, "dtype"):
            array = np.array(values, dtype=np.dtypes.StringDType())
    except UnicodeEncodeError as e:
        raise SchemaError(f"{what}: a lone surrogate cannot be stored as UTF-8: {e.object!r}") from None
    except ValueError as e:
        raise SchemaError(f"{what}: {e}") from None
    return array


def checked_rows(value: Any, what: str) -> int:
    """A number of rows; SchemaError, which says `what` it is, when it is none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**63:
        raise SchemaError(f"{what} is a number of rows, 0 or more, not {value!r}")
    return int(value)


def checked_shape(value: Any) -> tuple[int, ...]:
    """The structural shape of a block; SchemaError when it is none."""
    if not isinstance(value, (tuple, list, np.ndarray)):
        raise SchemaError(f"structural_shape is a tuple of lengths, not {value!r}")
    return tuple(checked_rows(n, "each length of structural_shape") for n in value)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same type, shape, null rows and, outside these, the same bits."""
    a, b = np.asanyarray(a), np.asanyarray(b)
    if a.shape != b.shape or _kind(a) != _kind(b):
        return False
    masks = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    if masks[0].any() or masks[1].any():
        if not np.array_equal(*masks):
            return False
        a, b = np.asarray(a)[~masks[0]], np.asarray(b)[~masks[1]]
    a, b = np.asarray(a), np.asarray(b)
    if _kind(a) == "string":
        return bool(a.tolist() == b.tolist())
    native = a.dtype.newbyteorder("=")
    return bool(a.astype(native, copy=False).tobytes() == b.astype(native, copy=False).tobytes())


def _kind(array: Array) -> Any:
    return "string" if array.dtype.kind in "OTU" else array.dtype.newbyteorder("=")


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, (np.ndarray, float)) and isinstance(b, (np.ndarray, float)):
        return same_bits(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return type(a) is type(b) and bool(a == b)


def _same_values(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(_same_value(a[key], b[key]) for key in a)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _described(array: Array) -> str:
    kind = "string" if array.dtype.kind in "OTU" else array.dtype.name
    trailing = "".join(f"[{n}]" for n in array.shape[1:])
    nulls = int(np.ma.getmaskarray(array).reshape(len(array), -1).any(axis=1).sum()) if np.ma.isMA(array) else 0
    return kind + trailing + (f" ({nulls} null)" if nulls else "")
