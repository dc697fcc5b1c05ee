# SPDX-License-Identifier: BSD-3-Clause
"""The entries of a zip file whose directory or headers are damaged.

An entry stands twice in a zip file: in the directory at the end, and in the header before its bytes. Where one of them
is damaged the other is taken, when the CRC-32 of the bytes says that it is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from mrec._core import crc32
from mrec.errors import CorruptData, MrecError
from mrec.zarr import zipdir
from mrec.zarr import zipformat as z
from mrec.zarr.zipdir import Central, Entry

_STEP = 1 << 24


class _Header(NamedTuple):
    """An entry as the header before its bytes has it; start: of the bytes."""

    raw_name: bytes
    name: str
    start: int
    size: int
    crc32: int


class Salvage:
    """Finds what entries it can. doubtful: name -> why, of entries that may be called otherwise; they are there, and
    nothing is to be read of them. incomplete: there may have been more entries.
    """

    def __init__(self) -> None:
        self.doubtful: dict[str, str] = {}
        self.incomplete = False

    def __call__(self, fd: int, where: str) -> list[Entry]:
        """The files in the zip file that is open as `fd`, sorted by their names. CorruptData when there are none."""
        try:
            with open(fd, "rb", closefd=False) as file:
                end = zipdir.find_end(fd, os.fstat(fd).st_size)
                listed = list(zipdir.central_entries(file, end))
            zipdir.check_names([entry.name for entry in listed])
            found = list(self._located(fd, listed))
        except MrecError:
            found = list(self._walked(fd))
        entries: dict[str, Entry] = {}
        for entry in found:
            if entry.name in entries:
                self.doubtful[entry.name] = "two entries have this name"
            if not entry.name.endswith("/"):
                entries[entry.name] = entry
        if not entries:
            raise CorruptData(f"{where}: no entry of the zip file is to be found")
        return sorted(entries.values(), key=lambda entry: entry.name.encode())

    def _located(self, fd: int, listed: list[Central]) -> Iterator[Entry]:
        """The entries of a directory, each by whichever of its two headers fits its bytes."""
        walked: dict[str, Entry] | None = None
        for central in listed:
            header = _header_or_none(fd, central.header)
            usual = central.header + z.LOCAL.size + len(central.raw_name)
            starts = [usual] if header is None else [header.start, usual]
            found = [Entry(central.name, start, central.size, central.crc32) for start in starts]
            fitting = [entry for entry in found if _fits(fd, entry)]
            if fitting and os.pread(fd, len(central.raw_name), central.header + z.LOCAL.size) != central.raw_name:
                for name in {central.name} | ({header.name} if header is not None else set()):
                    self.doubtful[name] = "the two names of the entry contradict each other"
                    yield fitting[0]._replace(name=name)
                continue
            if not fitting:
                walked = {entry.name: entry for entry in Salvage()._walked(fd)} if walked is None else walked
                other = walked.get(central.name)
                fitting = [other] if other is not None and _fits(fd, other) else found
            yield fitting[0]

    def _walked(self, fd: int) -> Iterator[Entry]:
        """The entries one after another, without the directory."""
        at, end, sure = 0, os.fstat(fd).st_size, True
        while at < end and os.pread(fd, 4, at) != z.CENTRAL_SIGNATURE:
            header = _header_or_none(fd, at)
            if header is not None:
                size = min(header.size, end - header.start)  # the last one may be cut off
                entry = Entry(header.name, header.start, size, header.crc32)
            if header is None or not (sure or _fits(fd, entry)):  # what is searched for may only look like a header
                at, sure, self.incomplete = _next_signature(fd, at + 1), False, True
                continue
            yield entry
            at, sure = header.start + header.size, True
        self.incomplete |= at >= end


def _header(fd: int, at: int) -> _Header:
    """The header that stands at a place. CorruptData when none does."""
    fields = z.LOCAL.unpack(zipdir.read(fd, z.LOCAL.size, at))
    signature, _, flags, method, _, _, crc, stored, size, nname, nextra = fields
    if signature != z.LOCAL_SIGNATURE or method or flags & (zipdir.ENCRYPTED | zipdir.STREAMED):
        raise CorruptData(f"there is no header at byte {at}")
    raw = zipdir.read(fd, nname + nextra, at + z.LOCAL.size)
    extra = zipdir.extra_fields(raw[nname:], raw[:nname])
    name = zipdir.decode_name(raw[:nname], flags, extra)
    size, stored, *_ = zipdir.widened((size, stored, 0, 0), extra.get(z.ZIP64_FIELD), name)
    zipdir.check_name(name, size)
    if size != stored:
        raise CorruptData(f"the header at byte {at} has two sizes")
    return _Header(raw[:nname], name, at + z.LOCAL.size + len(raw), size, crc)


def _header_or_none(fd: int, at: int) -> _Header | None:
    try:
        return _header(fd, at)
    except MrecError:
        return None


def _next_signature(fd: int, at: int) -> int:
    """Where the next header may begin; the end of the file when nothing looks so."""
    while raw := os.pread(fd, _STEP, at):
        found = raw.find(z.LOCAL_SIGNATURE)
        if found >= 0:
            return at + found
        if len(raw) < 4:
            break
        at += len(raw) - 3
    return os.fstat(fd).st_size


def _fits(fd: int, entry: Entry) -> bool:
    """Whether the bytes of an entry have its CRC-32."""
    crc, at, end = 0, entry.offset, entry.offset + entry.size
    while at < end:
        raw = os.pread(fd, min(_STEP, end - at), at)
        if not raw:
            return False
        crc, at = crc32(raw, crc), at + len(raw)
    return crc == entry.crc32
