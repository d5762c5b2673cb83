"""Which file's bytes belong at which physical offset: names may lie, records say where they were written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.kinds import FileKind
from rmqtool.store.patched import PatchedSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from rmqtool.repair.mend.overlay import Patch
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_PROBED = 64
"""records at the begin of a file that say where it belongs"""


@dataclass(frozen=True, slots=True)
class Slab:
    """One segment as it should be.

    file: where its bytes come from, None when no file has them. given: what donors have for its holes.
    """

    base: int
    size: int
    path: str
    file: StoreFile | None
    given: tuple[Patch, ...] = ()

    @property
    def end(self) -> int:
        """Physical offset behind its last byte."""
        return self.base + self.size

    @property
    def moved(self) -> bool:
        """Whether the bytes lie under another name now."""
        return self.file is not None and self.file.path != self.path


@dataclass
class Placing:
    """The segments of a log in order, without holes, and what else lies beside them.

    strays: files that are no part of the log, with the reason. ahead: a segment of zeros, made ahead and not
    yet used, which a broker removes by itself.
    """

    size: int
    slabs: list[Slab] = field(default_factory=list)
    strays: list[tuple[StoreFile, str]] = field(default_factory=list)
    ahead: StoreFile | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    file: StoreFile
    true: int | None
    """base by the file's own records; None without any"""
    data: bool
    """any byte that is not zero, or that cannot be read"""

    def fits(self, size: int) -> bool:
        return self.true is not None and self.true == self.file.base_offset and self.true % size == 0


def place_segments(store: Store, kernels: ModuleType, mode: OpenMode) -> Placing:
    """Finds the bytes of every segment from the first to the last that has records at their own place."""
    size = store.sizes[FileKind.COMMITLOG].value
    known = [_look(file, kernels, mode) for file in _candidates(store)]
    placing = Placing(size)
    homes = _homes(known, size)
    if not homes:
        placing.strays = [(one.file, "no-records") for one in known]
        return placing
    first, last = min(homes), max(homes)
    used = {one.file for one in homes.values()}
    for base in range(first, last + size, size):
        placing.slabs.append(_slab(base, size, homes.get(base), known, used))
    taken = {slab.file for slab in placing.slabs} | {_named(known, slab.base) for slab in placing.slabs}
    for one in known:
        if one.file in taken:
            continue
        if one.file.base_offset == last + size and one.file.size == size and not one.data:
            placing.ahead = one.file
        else:
            placing.strays.append((one.file, _why(one, homes, size)))
    return placing


def _why(one: _Known, homes: dict[int, _Known], size: int) -> str:
    if one.file.base_offset is None:
        return "stray-file"
    if one.file.size == 0:
        return "empty-file"
    if not one.data:
        return "unused-segment"
    if one.true in homes:
        return "copied-segment"
    return "wrong-name" if one.file.base_offset % size else "no-records"


def _candidates(store: Store) -> list[StoreFile]:
    """Files in the log's directories, also those whose names are no numbers."""
    roots = {file.path.rpartition("/")[0] for file in store.of_kind(FileKind.COMMITLOG)} | {"commitlog"}
    unknown = [file for file in store.of_kind(FileKind.UNKNOWN) if file.path.rpartition("/")[0] in roots]
    return [file for file in (*store.of_kind(FileKind.COMMITLOG), *unknown) if file.regular]


def _homes(known: Iterable[_Known], size: int) -> dict[int, _Known]:
    """The best file for each base that has one: those at their own place first, then moved ones."""
    homes: dict[int, _Known] = {}
    for one in known:
        if one.fits(size) and one.true is not None:
            rival = homes.get(one.true)
            if rival is None or _rank(one, size) > _rank(rival, size):
                homes[one.true] = one
    for one in known:
        if one.true is not None and one.true >= 0 and one.true % size == 0 and one.true not in homes:
            homes[one.true] = one
    return homes


def _rank(one: _Known, size: int) -> tuple[bool, bool, int, int]:
    padded = one.file.name == f"{one.file.base_offset:020d}"
    return one.file.size == size, padded, one.file.size, -one.file.root


def _slab(base: int, size: int, home: _Known | None, known: list[_Known], used: set[StoreFile]) -> Slab:
    there = _named(known, base)
    if home is None:
        # its bytes are no records at their own place; what may be read from them is decided by the survey
        file = there if there is not None and there not in used and there.size else None
        path = there.path if there is not None else f"commitlog/{base:020d}"
        return Slab(base, size, path, file)
    own = home.file.base_offset == base and home.file.name == f"{base:020d}"
    path = home.file.path if own else f"commitlog/{base:020d}"
    return Slab(base, size, path, home.file)


def _named(known: list[_Known], base: int) -> StoreFile | None:
    return next(
        (one.file for one in known if one.file.base_offset == base and one.file.name == f"{base:020d}"), None
    )


def _look(file: StoreFile, kernels: ModuleType, mode: OpenMode) -> _Known:
    """Where most of the first whole records of a file say that its first byte is."""
    shifts: Counter[int] = Counter()
    base = file.base_offset or 0
    try:
        with PatchedSource(file.open(mode), file.size) as source:
            scan = SegmentScan(
                source,
                base,
                checks=Check.CRC,
                active=True,
                keep_stale=True,
                batch_rows=_PROBED,
                kernels=kernels,
            )
            data = scan.first_nonzero(0) < file.size or bool(source.unreadable)
            for event in scan if data else ():
                if isinstance(event, Records):
                    good = event.rows[event.rows[:, Field.CRC_STATE] != CrcState.BAD]
                    stored = good[:, Field.STORED_PHYSICAL_OFFSET] - good[:, Field.POSITION]
                    shifts.update(stored.tolist())
                    if shifts.total() >= _PROBED:
                        break
    except RmqtoolError:
        return _Known(file, None, True)
    if base in shifts and file.base_offset is not None and shifts[base] * 4 >= shifts.total():
        return _Known(file, base, data)
    true = shifts.most_common(1)[0][0] if shifts else None
    return _Known(file, true, data)
