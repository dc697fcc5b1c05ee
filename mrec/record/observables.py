# SPDX-License-Identifier: BSD-3-Clause
"""Named results: `observables/`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

import numpy as np

from mrec import dtypes
from mrec.dtypes import DTYPES
from mrec.errors import CorruptData, MrecError, SchemaError, UnknownName
from mrec.frame import as_column, same_bits
from mrec.names import check_new_name, warn_lookalikes
from mrec.record import publish
from mrec.record.whole import read_whole
from mrec.trajectory.coerce import coerce_column
from mrec.trajectory.infer import infer_column
from mrec.trajectory.schema import Column
from mrec.trajectory.standing import column_type
from mrec.zarr.array import Array
from mrec.zarr.group import Group
from mrec.zarr.metadata import GroupMeta
from mrec.zarr.store import Store
from mrec.zarr.write import codecs_of, write_array, write_group

T = TypeVar("T")

SECTION = "observables"
META = "meta"
#: What the document of an observable has to say, and the type of each.
REQUIRED: dict[str, type] = {"kind": str, "description": str, "time_dependent": bool}


class Observable:
    """A named result: an array of any shape, and what it is.

    values: the array, of any column type. kind: what sort of result ("scalar", "curve", "histogram", a name of yours).
    description: a sentence. time_dependent: whether its first axis is time. Anything else (`unit`, `axes`, `sampling`,
    `domain`, `target`, names of yours) is kept as JSON, in `meta`.

    >>> msd = Observable([0.0, 0.4, 0.9], "curve", "mean squared displacement", True, unit="nm^2")
    >>> msd.unit, msd.values.shape
    ('nm^2', (3,))
    """

    __slots__ = ("meta", "values")

    def __init__(self, values: Any, kind: str, description: str, time_dependent: bool, **more: Any) -> None:
        self.values: np.ndarray = as_column(values, "the values of an observable")
        self.meta: dict[str, Any] = {
            "kind": kind,
            "description": description,
            "time_dependent": time_dependent,
            **more,
        }

    @classmethod
    def _made(cls, values: np.ndarray, meta: dict[str, Any]) -> Observable:
        made = object.__new__(cls)
        made.values, made.meta = values, meta
        return made

    @property
    def kind(self) -> str:
        """What sort of result it is."""
        return str(self.meta["kind"])

    @property
    def description(self) -> str:
        """What it is, in a sentence."""
        return str(self.meta["description"])

    @property
    def time_dependent(self) -> bool:
        """Whether its first axis is time."""
        return bool(self.meta["time_dependent"])

    @property
    def unit(self) -> Any:
        """The unit of the values; None when it is not said."""
        return self.meta.get("unit")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]

    def __eq__(self, other: object) -> bool:
        """The same values, bit for bit, and the same document."""
        if not isinstance(other, Observable):
            return NotImplemented
        return same_bits(self.values, other.values) and self.meta == other.meta

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "string" if self.values.dtype.kind in "OTU" else self.values.dtype.name
        unit = f" in {self.unit}" if self.unit else ""
        return f"<Observable {self.kind}: {kind}{list(self.values.shape)}{unit}, {self.description}>"


class Observables(MutableMapping[str, Observable]):
    """The observables of a record, by name; each is read when it is asked for, and written when it is assigned.

    An observable appears whole, its array with its document, or not at all.
    """

    def __init__(self, path: str, look: Callable[[str, Callable[[Store], Any]], Any], root: Callable[[], str]) -> None:
        """look: reads a section as it stands; root: the directory to write to, or an error when there is none."""
        self._path, self._look, self._root = path, look, root

    def _names(self) -> list[str]:
        return self._look(SECTION, _names) or []

    def __getitem__(self, name: str) -> Observable:
        found = self._look(SECTION, lambda store: read_observable(store, name))
        if found is None:
            there = ", ".join(map(repr, self._names())) or "none"
            raise UnknownName(f"there is no observable {name!r}; there are: {there}")
        observable: Observable = found
        return observable

    def __setitem__(self, name: str, observable: Any) -> None:
        write_observables(self._root(), {name: observable})

    def update(self, *others: Any, **named: Any) -> None:
        """Write several observables, all of them at once."""
        write_observables(self._root(), dict(*others, **named))

    def __delitem__(self, name: str) -> None:
        root = self._root()
        if name not in self:
            self[name]
        with publish.section(root, SECTION, keep=True) as made:
            shutil.rmtree(os.path.join(made, name))
            shutil.rmtree(os.path.join(made, META, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __repr__(self) -> str:
        return f"<Observables of {self._path}: {', '.join(self) or 'none'}>"


# ---- reading -----------------------------------------------------------------------------------------------------


def _names(store: Store) -> list[str]:
    """The names of the arrays; CorruptData when one has no document, or a document no array."""
    if not store.exists(f"{SECTION}/zarr.json"):
        return []
    group = Group(store, SECTION)
    arrays = {name for name in group if name != META and isinstance(group[name], Array)}
    documents = set(_documents(group))
    for name in sorted(arrays ^ documents):
        which = "no document in observables/meta" if name in arrays else "a document and no array"
        raise CorruptData(f"{store.path(SECTION)}: the observable {name!r} has {which}")
    return sorted(arrays)


def _documents(group: Group) -> Group | tuple[()]:
    found = group[META] if META in group else ()
    if isinstance(found, Array):
        raise CorruptData(f"{group.path}/{META}: an array stands where a group has to be")
    return found


def read_observable(store: Store, name: str) -> Observable | None:
    """One observable; None when there is none of that name. CorruptData when half of it is missing or malformed."""
    if name == META or name not in _names(store):
        return None
    group = Group(store, SECTION)
    array, document = group[name], group[f"{META}/{name}"]
    assert isinstance(array, Array)
    if isinstance(document, Array):
        raise CorruptData(f"{document.path}: an array stands where a group has to be")
    column_type(array.meta)
    check_document(document.attrs, document.path, CorruptData)
    values = read_whole(array) if array.shape else np.asarray(array[()], array.dtype)
    return Observable._made(values, dict(document.attrs))


def check_document(document: Mapping[str, Any], where: str, error: type[MrecError]) -> None:
    """The error when a member that has to be there is not, or is of another type."""
    for key, kind in REQUIRED.items():
        if key not in document:
            raise error(f"{where}: {key!r} is missing; an observable has {', '.join(REQUIRED)}")
        if not isinstance(document[key], kind):
            raise error(f"{where}: {key} is {document[key]!r}, no {kind.__name__}")


# ---- writing -----------------------------------------------------------------------------------------------------


def write_observables(root: str, observables: Mapping[str, Any]) -> None:
    """Write observables of the record in a directory, all of them or none; others that are there stay."""
    checked = {name: _checked(name, observable) for name, observable in observables.items()}
    with publish.section(root, SECTION, keep=True) as made:
        for path in (made, os.path.join(made, META)):
            if not os.path.isfile(os.path.join(path, "zarr.json")):
                os.makedirs(path, exist_ok=True)
                publish.write_file(os.path.join(path, "zarr.json"), _EMPTY)
        there = {entry.name for entry in os.scandir(made) if entry.is_dir()}
        warn_lookalikes([*sorted(there), *(name for name in checked if name not in there)], "observable", stacklevel=5)
        for name, (values, kind, document) in checked.items():
            array, meta = os.path.join(made, name), os.path.join(made, META, name)
            for path in (array, meta):
                publish.remove_tree(path)
            write_array(array, values, kind.zarr, codecs_of(kind.numpy))
            write_group(meta, document)


_EMPTY = GroupMeta().document().encode()


def _checked(name: str, given: Any) -> tuple[np.ndarray, dtypes.DType, dict[str, Any]]:
    """An observable as it is stored; SchemaError for what the format has no place for."""
    check_new_name(name, "observable", {META})
    if not isinstance(given, Observable):
        raise SchemaError(
            f"{name!r} takes a mrec.Observable (values, kind, description, time_dependent), not {given!r}"
        )
    where = f"observable {name!r}"
    check_document(given.meta, where, SchemaError)
    try:
        document = dtypes.to_json(dtypes.TAGS["json"], given.meta)
    except ValueError as e:
        raise SchemaError(f"{where}: {e}") from None
    if np.ma.isMaskedArray(given.values) and np.ma.getmaskarray(given.values).any():
        raise SchemaError(f"{where} has masked values, for which an observable has no place; fill them, as with NaN")
    values = as_column(np.ma.getdata(given.values), where)
    try:
        kind = infer_column(values, False)
        if kind.name == "string":
            coerce_column(Column(name, DTYPES["string"]), values.ravel())
            return np.asarray(values, object), kind, document
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    return values.astype(kind.numpy, copy=False), kind, document
