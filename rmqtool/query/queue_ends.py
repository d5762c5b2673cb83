"""The first and the last unit of a queue file, and those from a place of the log on, in a few small reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.consumequeue import PRE_BLANK, BatchUnit, Unit
from formats.primitives import sizeof
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from formats.primitives import Schema
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile

SCHEMAS: dict[FileKind, Schema] = {FileKind.CONSUMEQUEUE: Unit, FileKind.BATCHCONSUMEQUEUE: BatchUnit}
_SMALL = 1 << 16
"""bytes up to which a file is read whole instead of being bisected"""


@dataclass(frozen=True, slots=True)
class FileEnds:
    """What a queue file holds.

    units: used ones, fillers included. pre_blank: fillers in front. first, last: outermost units that stand
    for messages, None without any. min_offset, max_offset: queue offset of the first message and of the next
    one to come; equal in a file without messages, None where only messages could tell (batch queue).
    """

    units: int
    pre_blank: int
    first: dict[str, int] | None
    last: dict[str, int] | None
    min_offset: int | None
    max_offset: int | None


def file_ends(file: StoreFile) -> FileEnds:
    """Ends of one file of a plain or batch consume queue. Raises `StoreIOError` or `UnreadableError`.

    A queue file has its full length from the start and is zero behind its last unit; the place where the
    zeros begin is found by bisection.
    """
    schema = SCHEMAS[file.kind]
    with file.open("pread") as source:
        units = _Units(source, schema)
        used = units.used()
        first = units.fillers(used) if schema is Unit else 0
        outer = [units.fields(first), units.fields(used - 1)] if first < used else [None, None]
    if schema is Unit:
        start = (file.base_offset or 0) // sizeof(Unit)
        return FileEnds(used, first, outer[0], outer[1], start + first, start + used)
    if outer[0] is None or outer[1] is None:
        return FileEnds(used, 0, None, None, None, None)
    end = outer[1]["base_offset"] + outer[1]["batch_size"]
    return FileEnds(used, 0, outer[0], outer[1], outer[0]["base_offset"], end)


def units_from(file: StoreFile, physical_offset: int, most: int) -> list[dict[str, int]]:
    """Up to `most` units of a file from the first on that leads to this offset or behind it.

    Found by bisection, as units of a file lead to ever higher offsets. Raises what `file_ends` raises.
    """
    schema = SCHEMAS[file.kind]
    with file.open("pread") as source:
        units = _Units(source, schema)
        used = units.used()
        first = units.fillers(used) if schema is Unit else 0
        at = _partition(first, used, lambda index: units.fields(index)["physical_offset"] >= physical_offset)
        return [units.fields(index) for index in range(at, min(at + most, used))]


class _Units:
    def __init__(self, source: ByteSource, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._width = sizeof(schema)
        self._whole = source.window(0, source.size).tobytes() if source.size <= _SMALL else None

    def raw(self, index: int) -> bytes:
        at = index * self._width
        if self._whole is not None:
            return self._whole[at : at + self._width]
        return self._source.window(at, self._width).tobytes()

    def used(self) -> int:
        """Number of units up to the last that is not all zero."""
        count = self._source.size // self._width
        if self._whole is not None:
            return -(-len(self._whole[: count * self._width].rstrip(b"\0")) // self._width)
        if any(self.raw(count - 1)):
            return count
        return _partition(0, count, lambda index: not any(self.raw(index)))

    def fillers(self, used: int) -> int:
        """Number of pre-blank units in front."""
        if used == 0 or self.raw(0) != PRE_BLANK:
            return 0
        return _partition(0, used, lambda index: self.raw(index) != PRE_BLANK)

    def fields(self, index: int) -> dict[str, int]:
        parsed = self._schema.parse(self.raw(index))
        return {name: int(value) for name, value in parsed.items() if name[0] != "_"}


def _partition(low: int, high: int, behind: Callable[[int], bool]) -> int:
    """The first index for which `behind` holds, given that it holds for all later ones."""
    while low < high:
        middle = (low + high) // 2
        if behind(middle):
            high = middle
        else:
            low = middle + 1
    return low
