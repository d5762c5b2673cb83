"""Records that stand in for missing ones: tombstones for queue offsets, fillers for the rest of a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.repair.filler import SMALLEST_FILLER, filler, split
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import LONGEST_TIME, smallest, tombstone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.repair.salvage.bridge import Allocation, Gap
    from rmqtool.repair.salvage.tabulate import Names

_MARK = 96
"""bytes with which a tombstone can say what it is"""

_BATCH = 0x7FFF
"""queue offsets that one inner batch can have at most (`INNER_NUM` is a short)"""

_LONGEST_OFFSET = (1 << 63) - 1 - _BATCH


class Placeholders:
    """Makes them for one store. mark: 16 hex digits that they carry where there is room.

    host: store host (4 or 16 bytes of address, 4 of port) that they get. trailer: with `__CRC32#`.
    """

    def __init__(self, names: Names, mark: str, host: bytes, *, trailer: bool) -> None:
        self._names = names
        self._mark = mark
        self._host = (host[:-4], int.from_bytes(host[-4:], "big", signed=True))
        self._trailer = trailer
        self._sizes: dict[int, tuple[int, int, int]] = {}
        self.smallest_filler = next(
            size for size in range(SMALLEST_FILLER, 2 * SMALLEST_FILLER) if self._fill(size) is not None
        )

    def sizes(self, partition: int) -> tuple[int, int, int]:
        """Least and wanted bytes of a tombstone, and the queue offsets that one covers."""
        known = self._sizes.get(partition)
        if known is None:
            step = _BATCH if self._names.partitions[partition][0] in self._names.batch_topics else 1
            place = self._place(partition, _LONGEST_OFFSET, step, 0, LONGEST_TIME)
            least = smallest(place, crc_trailer=self._trailer)
            known = self._sizes[partition] = (least, least + _MARK, step)
        return known

    def in_gap(self, gap: Gap) -> Iterator[tuple[int, bytes]]:
        """(physical offset, record) of all that fills a gap; of one that rolls, only the tombstones."""
        at = gap.start
        rest = gap.end - gap.start - sum(one.count * one.size for one in gap.allocated)
        spread = 0 if gap.rolls or rest >= self.smallest_filler else rest
        for number, one in enumerate(gap.allocated):
            last = number == len(gap.allocated) - 1
            for record in self.tombstones(one, at, spread if last else 0):
                yield at, record
                at += len(record)
        if gap.rolls:
            return
        for size in split(gap.end - at, smallest=self.smallest_filler) or ():
            record = self._filler_at(size, at, gap.time)
            yield at, record
            at += size

    def tombstones(self, one: Allocation, at: int, spread: int = 0) -> Iterator[bytes]:
        """The records of an allocation from physical offset `at` on, the last `spread` bytes longer."""
        for first in range(one.first, one.end, one.step):
            count = min(one.step, one.end - first)
            size = one.size + (spread if first + count == one.end else 0)
            place = self._place(one.partition, first, count, at, one.time)
            record = tombstone(place, size, self._mark, crc_trailer=self._trailer)
            if record is None:
                raise AssertionError(f"a tombstone of {size} bytes was planned for {place}")
            yield record
            at += size

    def _place(self, partition: int, first: int, count: int, at: int, time: int) -> Place:
        topic, queue_id = self._names.partitions[partition]
        batch = count if topic in self._names.batch_topics else None
        return Place(topic, queue_id, first, at, time, store_host=self._host, batch_size=batch)

    def _filler_at(self, size: int, at: int, time: int) -> bytes:
        record = filler(size, at, time, crc_trailer=self._trailer)
        if record is None:
            raise AssertionError(f"a filler of {size} bytes was planned")
        return record

    def _fill(self, size: int) -> bytes | None:
        return filler(size, 0, 0, crc_trailer=self._trailer)
