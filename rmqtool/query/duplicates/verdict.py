"""Which records with one key are messages of their own: columns at once, sorted by key and place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import SysFlag
from rmqtool.query.duplicates.copies import Copy, copy_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.query.duplicates.batches import BatchWalk

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

Row = dict[str, Any]

BATCH = "batch"
_KINDS = (*Copy, BATCH)
_OWN, _HALF, _BATCH = (_KINDS.index(kind) for kind in (Copy.OWN, Copy.HALF, BATCH))
_NOT_SERVED = (int(SysFlag.PREPARED), int(SysFlag.ROLLBACK))


@dataclass
class Duplicates:
    """Judges tables of `suspects`; a key must be whole in one table.

    explained: records that are not duplicates although they share a key: kind of copy → number. keys,
    messages: how many duplicates were reported.
    """

    walk: BatchWalk
    explained: Counter[str] = field(default_factory=Counter)
    keys: int = 0
    messages: int = 0

    def rows(self, table: pa.Table | None) -> Iterator[Row]:
        """One row for each key and topic with more than one message of its own, in order of key and topic."""
        if table is None or not table.num_rows:
            return
        sorted_ = _Sorted.of(table)
        kinds = sorted_.kinds()
        kinds[sorted_.continuing(kinds == _OWN, self.walk)] = _BATCH
        shared = np.bincount(sorted_.key)[sorted_.key] > 1
        for number in np.unique(kinds[shared]).tolist():
            if number != _OWN:
                self.explained[str(_KINDS[number])] += int((shared & (kinds == number)).sum())
        for row in sorted_.repeated(kinds):
            self.keys += 1
            self.messages += row["messages"]
            yield row

    def summary(self) -> Row:
        """What the closing summary says of them."""
        return {
            "duplicate_keys": self.keys,
            "duplicate_messages": self.messages,
            "copies_explained": dict(self.explained),
        }


@dataclass(frozen=True)
class _Sorted:
    """The columns in order of key and place, texts as numbers (-1 for null); keys are numbered in order."""

    table: pa.Table
    key: Ints
    topic: Ints
    topics: list[str | None]

    @classmethod
    def of(cls, table: pa.Table) -> _Sorted:
        order = pc.sort_indices(table, [("key", "ascending"), ("physical_offset", "ascending")])
        table = table.take(order)
        key, _ = _coded(table["key"])
        places = table["physical_offset"].to_numpy()
        again = np.zeros(len(key), np.bool_)  # one record may name a key twice
        again[1:] = (key[1:] == key[:-1]) & (places[1:] == places[:-1])
        topic, topics = _coded(table["topic"], ordered=True)
        return cls(table.filter(pa.array(~again)), key[~again], topic[~again], topics)

    def numbers(self, name: str) -> Ints:
        return np.asarray(self.table[name].to_numpy(), np.int64)

    def kinds(self) -> Ints:
        """Number of the kind of each record: by its topic, and by its state in a transaction."""
        of_topic = np.array([_KINDS.index(copy_of(topic)) for topic in [*self.topics, None]], np.int64)
        kinds: Ints = np.take(of_topic, self.topic)
        waiting = np.isin(self.numbers("sys_flag") & int(SysFlag.TRANSACTION_MASK), _NOT_SERVED)
        kinds[waiting & (kinds == _OWN)] = _HALF
        return kinds

    def continuing(self, own: Mask, walk: BatchWalk) -> Ints:
        """Records that belong to the batch of one before them: 5.3.3 gives all of a batch one UNIQ_KEY."""
        places = np.flatnonzero(own)
        places = places[np.lexsort((places, self.topic[places], self.key[places]))]
        before, after = places[:-1], places[1:]
        uniq, _ = _coded(self.table["uniq_key"])
        host, _ = _coded(self.table["born_host"])
        same = uniq[after] >= 0
        for values in (
            self.key, self.topic, uniq, host, self.numbers("queue_id"), self.numbers("born_timestamp"),
        ):  # fmt: skip
            same &= values[before] == values[after]
        start, queue_offset = self.numbers("physical_offset"), self.numbers("queue_offset")
        end = start + self.numbers("store_size")
        apart = queue_offset[after] - queue_offset[before]
        joined = same & (apart == 1) & (end[before] == start[after])
        for at in np.flatnonzero(same & (apart > 1) & (end[before] < start[after])).tolist():
            joined[at] = walk.joins(int(start[before[at]]), int(start[after[at]]))
        return np.asarray(after[joined])

    def repeated(self, kinds: Ints) -> Iterator[Row]:
        """A row for each key and topic with several records of kind OWN."""
        leaders = np.flatnonzero(kinds == _OWN)
        leaders = leaders[np.lexsort((leaders, self.topic[leaders], self.key[leaders]))]
        group = np.stack([self.key[leaders], self.topic[leaders]])
        starts = np.flatnonzero(np.r_[bool(len(leaders)), (np.diff(group, axis=1) != 0).any(axis=0)])
        lengths = np.diff(np.r_[starts, len(leaders)])
        offsets = self.numbers("physical_offset")
        for start, length in zip(starts[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True):
            some = leaders[start : start + length]
            first, last = np.searchsorted(self.key, self.key[some[0]] + np.arange(2))
            copies = Counter(str(_KINDS[kind]) for kind in kinds[first:last].tolist() if kind != _OWN)
            topic = int(self.topic[some[0]])
            yield {
                "key": self.table["key"][int(some[0])].as_py(),
                "topic": None if topic < 0 else self.topics[topic],
                "messages": len(some),
                "physical_offsets": offsets[some].tolist(),
                "copies": dict(copies),
            }


def _coded(column: pa.ChunkedArray, *, ordered: bool = False) -> tuple[Ints, list[str | None]]:
    """Texts as numbers, -1 for null; with `ordered` in the order of their bytes."""
    coded = column.combine_chunks().dictionary_encode()
    numbers = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    texts = coded.dictionary
    if ordered and len(texts):
        order = pc.sort_indices(texts)
        texts = texts.take(order)
        ranks = np.append(np.argsort(order.to_numpy()), -1)
        numbers = ranks[numbers]
    return numbers, texts.to_pylist()
