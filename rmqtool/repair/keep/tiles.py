"""Well-formed records side by side, made when their bytes are asked for."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from rmqtool.repair.content import chunks_of
from rmqtool.repair.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.repair.keep.model import QueueKey


class Tiles:
    """Tiles without a gap between them, as content of a change.

    Most of a large hole are tombstones that nothing but their place decides: such a one takes 24 bytes here.
    stamp: makes them, all with the store time `timestamp` (ms).
    """

    __slots__ = (
        "_end",
        "_keys",
        "_last",
        "_makers",
        "_numbers",
        "_queues",
        "_slots",
        "_stamp",
        "_starts",
        "_timestamp",
    )

    def __init__(self, stamp: Callable[[Place, int], bytes | None] | None = None, timestamp: int = 0) -> None:
        self._stamp, self._timestamp = stamp, timestamp
        self._starts = array("q")
        self._slots = array("q")
        self._queues = array("i")
        self._numbers: dict[QueueKey, int] = {}
        self._keys: list[QueueKey] = []
        self._makers: dict[int, Callable[[], bytes]] = {}
        self._end = 0
        self._last: tuple[int, bytes] = (-1, b"")

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def start(self) -> int:
        """Physical offset of the first byte."""
        return self._starts[0]

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._end - self.start if len(self) else 0

    def add(self, start: int, length: int, make: Callable[[], bytes]) -> None:
        """`length` bytes for the physical offset `start`, given by `make`."""
        self._makers[len(self)] = make
        self._put(start, length, 0, -1)

    def add_stamped(self, start: int, length: int, key: QueueKey, slot: int) -> None:
        """A tombstone of so many bytes for a position in a queue."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        self._put(start, length, slot, number)

    def _put(self, start: int, length: int, slot: int, queue: int) -> None:
        if len(self) and start != self._end:
            raise AssertionError(f"a tile at {start} where {self._end} is next")
        self._starts.append(start)
        self._slots.append(slot)
        self._queues.append(queue)
        self._end = start + length

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        place, end = self.start + position, self.start + position + length
        number = bisect_right(self._starts, place) - 1
        pieces = []
        while place < end:
            start = self._starts[number]
            data = self._bytes_of(number)
            pieces.append(data[place - start : end - start])
            place = start + len(data)
            number += 1
        return b"".join(pieces)

    def _bytes_of(self, number: int) -> bytes:
        if self._last[0] != number:
            following = self._starts[number + 1] if number + 1 < len(self) else self._end
            length = following - self._starts[number]
            data = self._made(number, length)
            if len(data) != length:
                raise AssertionError(f"{len(data)} bytes for a place of {length}")
            self._last = number, data
        return self._last[1]

    def _made(self, number: int, length: int) -> bytes:
        make = self._makers.get(number)
        if make is not None:
            return make()
        topic, queue_id = self._keys[self._queues[number]]
        place = Place(topic, queue_id, self._slots[number], self._starts[number], self._timestamp)
        data = self._stamp(place, length) if self._stamp is not None else None
        return data or b""

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        return chunks_of(self)
