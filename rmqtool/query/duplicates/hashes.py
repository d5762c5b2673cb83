"""Keys of records as 64-bit hashes, and which of them come again, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_BYTES = np.random.default_rng(4711).integers(1, 1 << 63, 256, np.uint64)
_MOST_SHARES = 1 << 20


def text_hashes(texts: pa.StringArray) -> Hashes:
    """A 64-bit hash of every text (none is null): a polynomial over its bytes, for all of them at once."""
    if not len(texts):
        return np.empty(0, np.uint64)
    _, offsets_buffer, data_buffer = texts.buffers()
    bounds = np.frombuffer(offsets_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(
        np.int64
    )
    data = np.frombuffer(data_buffer or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds -= bounds[0]
    starts, ends = bounds[:-1], bounds[1:]
    powers = np.full(len(data) + 1, _ODD)
    powers[0] = 1
    np.cumprod(powers, out=powers)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_BYTES[data] * powers[:-1])])
    inverse = np.full(len(data) + 1, _INVERSE)
    inverse[0] = 1
    np.cumprod(inverse, out=inverse)
    found: Hashes = (sums[ends] - sums[starts]) * inverse[starts] + (ends - starts).astype(np.uint64)
    return found


def keys_of(batch: pa.RecordBatch, *, by_key: bool) -> tuple[pa.StringArray, npt.NDArray[np.int64]]:
    """Every key of a batch (UNIQ_KEY, or with `by_key` the elements of KEYS) and the row that has it."""
    if not by_key:
        column = batch["uniq_key"]
        there = column.is_valid().to_numpy(zero_copy_only=False)
        return column.drop_null(), np.flatnonzero(there)
    parents = pc.list_parent_indices(batch["keys"]).to_numpy(zero_copy_only=False).astype(np.int64)
    return batch["keys"].flatten(), parents


@dataclass(frozen=True, slots=True)
class Room:
    """What one pass holds.

    hashes: that are remembered, 128 MB by default, and twice as much while they are sorted. bytes:
    of records that are judged together, about a million; those of one key are never parted.
    """

    hashes: int = 16_000_000
    bytes: int = 200_000_000


@dataclass(frozen=True, slots=True)
class Share:
    """The hashes that leave `part` when divided by `parts`, a power of two. One pass looks at one share."""

    part: int = 0
    parts: int = 1

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which hashes belong to it."""
        return np.asarray((hashes & np.uint64(self.parts - 1)) == np.uint64(self.part))

    @property
    def divisible(self) -> bool:
        """Whether halving it may still help: many records with one key are not distinguished by any share."""
        return self.parts < _MOST_SHARES

    def halves(self) -> tuple[Share, Share]:
        """Two shares that make up this one."""
        return Share(self.part, self.parts * 2), Share(self.part + self.parts, self.parts * 2)


@dataclass
class Repeated:
    """Which hashes come again among those of `share`, which is halved as often as memory demands.

    left: the other halves, for further passes.
    """

    by_key: bool
    share: Share = field(default_factory=Share)
    left: list[Share] = field(default_factory=list)
    room: Room = field(default_factory=Room)
    _seen: list[Hashes] = field(default_factory=list)
    _held: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the keys of a batch."""
        texts, _ = keys_of(batch, by_key=self.by_key)
        if not len(texts):
            return
        hashes = text_hashes(texts)
        hashes = hashes[self.share.holds(hashes)]
        self._seen.append(hashes)
        self._held += len(hashes)
        if self._held > self.room.hashes:
            self._make_room()

    def _make_room(self) -> None:
        every = _twice_at_most(self._seen)
        while len(every) > self.room.hashes // 2 and self.share.divisible:
            self.share, other = self.share.halves()
            self.left.append(other)
            every = every[self.share.holds(every)]
        self._seen, self._held = [every], len(every)

    def found(self) -> Hashes:
        """Hashes that more than one key has, sorted."""
        every = _twice_at_most(self._seen)
        self._seen, self._held = [], 0
        return np.asarray(every[1:][every[1:] == every[:-1]])


def _twice_at_most(parts: list[Hashes]) -> Hashes:
    """All hashes, sorted, none more than twice."""
    every = np.concatenate([np.empty(0, np.uint64), *parts])
    parts.clear()
    every.sort()
    third = every[2:] == every[:-2]
    return np.asarray(every[np.concatenate([np.ones(min(len(every), 2), np.bool_), ~third])])


def among(hashes: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    """Which hashes are in the sorted array `wanted`; quick also when that is far longer."""
    if not len(wanted):
        return np.zeros(len(hashes), np.bool_)
    places = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
    found: npt.NDArray[np.bool_] = wanted[places] == hashes
    return found
