"""Messages that are there more than once, told apart from the copies that brokers make and from batches.

Twice through the log: first the hashes of all keys as one column, in as many passes as memory needs, then
only the records whose hash comes again, by their real keys.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.stats.copies import Copy, copy_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

Row = dict[str, Any]

HASHES_AT_ONCE = 24_000_000
"""hashes of one pass: 200 MB, and as much again while they are sorted"""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_BYTES = np.random.default_rng(4711).integers(1, 1 << 63, 256, np.uint64)

COLUMNS = (
    "physical_offset", "store_size", "topic", "queue_id", "queue_offset", "born_timestamp", "born_host",
    "uniq_key", "keys",
)  # fmt: skip


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


@dataclass
class Repeated:
    """First part: which hashes come again. part, parts: only hashes of this share are looked at."""

    by_key: bool
    part: int = 0
    parts: int = 1
    _seen: list[Hashes] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the keys of a batch."""
        texts, _ = keys_of(batch, by_key=self.by_key)
        if len(texts):
            hashes = text_hashes(texts)
            self._seen.append(hashes[hashes % np.uint64(self.parts) == self.part])

    def found(self) -> Hashes:
        """Hashes that more than one key has, sorted."""
        if not self._seen:
            return np.empty(0, np.uint64)
        every = np.concatenate(self._seen)
        self._seen.clear()
        every.sort()
        return np.unique(every[1:][every[1:] == every[:-1]])


@dataclass(frozen=True, slots=True)
class _One:
    physical_offset: int
    end: int
    topic: str | None
    queue: tuple[int, int]
    born: tuple[int, str | None]
    uniq_key: str | None

    def continues(self, before: _One) -> bool:
        """Whether it is the next record of the same batch: 5.3.3 gives all of them one UNIQ_KEY."""
        return (
            self.uniq_key is not None
            and before.uniq_key == self.uniq_key
            and before.end == self.physical_offset
            and (before.topic, before.queue[0], before.born) == (self.topic, self.queue[0], self.born)
            and before.queue[1] + 1 == self.queue[1]
        )


class Duplicates:
    """Second part: the records with these hashes, by their real keys."""

    def __init__(self, hashes: Hashes, *, by_key: bool) -> None:
        self._hashes = hashes
        self._by_key = by_key
        self._found: dict[str, list[_One]] = defaultdict(list)
        self.explained: Counter[str] = Counter()
        """records that are no duplicates although they share a key: kind of copy → number"""

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the records of a batch that have one of the hashes."""
        texts, owners = keys_of(batch, by_key=self._by_key)
        if not len(texts) or not len(self._hashes):
            return
        hit = np.isin(text_hashes(texts), self._hashes)
        places = owners[hit]
        if not len(places):
            return
        keys = texts.filter(pa.array(hit)).to_pylist()
        rows = batch.select(COLUMNS[:8]).take(pa.array(places)).to_pylist()
        for key, row in zip(keys, rows, strict=True):
            one = _One(
                row["physical_offset"],
                row["physical_offset"] + row["store_size"],
                row["topic"],
                (row["queue_id"], row["queue_offset"]),
                (row["born_timestamp"], row["born_host"]),
                row["uniq_key"],
            )
            if not self._found[key] or self._found[key][-1] != one:  # one record may name a key twice
                self._found[key].append(one)

    def rows(self) -> Iterator[Row]:
        """One row for each key and topic with more than one message of its own."""
        for key, records in sorted(self._found.items()):
            own: dict[str | None, list[_One]] = defaultdict(list)
            copies: Counter[str] = Counter()
            for one in records:
                kind = copy_of(one.topic)
                if kind is not Copy.OWN:
                    copies[kind] += 1
                elif own[one.topic] and one.continues(own[one.topic][-1]):
                    copies["batch"] += 1
                    own[one.topic][-1] = replace(one, physical_offset=own[one.topic][-1].physical_offset)
                else:
                    own[one.topic].append(one)
            if len(records) > 1:
                self.explained.update(copies)
            yield from self._of_key(key, own, copies)

    @staticmethod
    def _of_key(key: str, own: dict[str | None, list[_One]], copies: Counter[str]) -> Iterator[Row]:
        for topic, records in own.items():
            if len(records) > 1:
                yield {
                    "key": key,
                    "topic": topic,
                    "messages": len(records),
                    "physical_offsets": [one.physical_offset for one in records],
                    "copies": dict(copies),
                }


def passes_needed(data_bytes: int, *, least_record: int = 150) -> int:
    """Passes over a log of that many bytes so that the hashes of each fit into memory."""
    return 1 + data_bytes // least_record // HASHES_AT_ONCE


def merged(parts: Sequence[Hashes]) -> Hashes:
    """The hashes of several passes, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
