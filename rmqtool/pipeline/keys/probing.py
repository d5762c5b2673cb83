"""What the tasks of a shuffle join do: narrow rows of what may have a wanted key, by the code of that key.

No task has the keys. A sieve lets most that nobody wants through to nowhere; Spark joins what is left with
the table of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.keys.fetching import fetch
from rmqtool.pipeline.keys.key_request import Kind, noted
from rmqtool.pipeline.keys.tasks import answered, candidates
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.runner import Lost
from rmqtool.query.by_key import index_topics
from rmqtool.query.index_lookup import open_index
from rmqtool.query.key_columns import hash_columns, index_hashes, powers_of
from rmqtool.query.key_scan import COMPARED
from rmqtool.scan.fields import Issue
from rmqtool.scan.picked import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.pipeline.keys.key_request import ItemUnit, KeyRequest, Unit
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.query.key_sieve import KeySieve
    from rmqtool.store.layout import Store

    Row = dict[str, Any]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Probing:
    """asked, sieve: broadcast."""

    asked: Any
    sieve: Any
    options: SourceOptions


class ItemTask(Probing):
    """Items of an index file → rows of `PROBES`, `unit` is the file."""

    def __call__(self, unit: ItemUnit) -> Iterator[pa.RecordBatch]:
        """A note tells of a file that cannot be read."""
        try:
            yield from self._of(unit)
        except RmqtoolError as error:
            yield noted(unit.lost(Lost(str(error))))

    def _of(self, unit: ItemUnit) -> Iterator[pa.RecordBatch]:
        sieve: KeySieve = self.sieve.value
        store = open_any(unit.store, config=self.options.config)
        file = store.file(unit.path)
        if file is None:
            raise RmqtoolError(f"{unit.path}: no such file or directory")
        topics = index_topics(store, sieve.topic)
        with open_index(store, file) as reader:
            if reader is None:
                return
            for hashes, offsets in reader.runs(unit.first, unit.end):
                possible = np.flatnonzero(hashes >= 0)
                for places, codes in sieve.codes(topics, hashes[possible]):
                    yield _rows(
                        offsets[possible[places]], Kind.CODE, store=unit.number, unit=unit.file, code=codes
                    )


class ScanTask(Probing):
    """Records of a part of a log → rows of `PROBES`. units: their numbers by segment and part."""

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """The same, and notes."""
        yield from answered(unit, self._of(unit))

    def _of(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        sieve: KeySieve = self.sieve.value
        reported: Row = {"not_covered": []}
        place = {"store": unit.number, "segment": unit.key[1], "unit": unit.place}
        found = candidates(
            unit, sieve, self.asked.value.window, (*COMPARED, "issues"), reported["not_covered"]
        )
        for _, batch in found:
            keys = _Keys.of(batch, blank=False)
            for topic, some in keys.by_topic():
                if topic is not None:
                    yield from keys.rows([sieve.topic or topic], some, sieve, keys.wanted(sieve), place)
            undecoded = (batch["issues"].to_numpy() & int(Issue.PROPERTIES_UTF8)) != 0
            if undecoded.any():
                yield _rows(keys.offsets[undecoded], Kind.RECORD, **place)
        yield noted(unit.about(reported))


@dataclass(frozen=True)
class CompareItems(Probing):
    """The records that items lead to → rows of `PROBES`. numbers: of the stores. For `ByStore`."""

    numbers: dict[str, int]

    def __call__(self, store: Store, path: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A row for each, and one for each code of its keys that may be wanted."""
        sieve: KeySieve = self.sieve.value
        asked: KeyRequest = self.asked.value
        place = {"store": self.numbers[path]}
        topics = index_topics(store, sieve.topic)
        first = store.segments.first_offset
        for made in fetch(store.segments, rows["physical_offset"].to_numpy(), COMPARED):
            if isinstance(made, Missing):
                kind = Kind.MISDIRECTED if made.physical_offset >= first else Kind.MISSING
                yield _rows(np.array([made.physical_offset]), kind, **place)
                continue
            keys = _Keys.of(made, blank=True)
            inside = keys.within(asked.window)
            for kind, chosen in ((Kind.RECORD, inside), (Kind.BEYOND, ~inside)):
                if chosen.any():
                    yield _rows(keys.offsets[chosen], kind, **place)
            wanted = keys.wanted(sieve) & inside
            for topic, some in keys.by_topic():
                yield from keys.rows(topics, some, sieve, wanted, place)
                if topic is not None and sieve.topic is None and topic not in topics:
                    yield from keys.rows([topic], some, sieve, wanted, place, Kind.OUTSIDE)


@dataclass(frozen=True)
class _Keys:
    """The keys of a batch of records, one after the other. owners: rows of `batch`."""

    batch: pa.RecordBatch
    offsets: Ints
    texts: pa.StringArray
    owners: Ints

    @classmethod
    def of(cls, batch: pa.RecordBatch, *, blank: bool) -> _Keys:
        """Elements of KEYS, and UNIQ_KEY. blank: a record without UNIQ_KEY has an empty one."""
        lists, unique = batch["keys"], batch["uniq_key"]
        parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        texts = pa.concat_arrays([lists.flatten(), pc.fill_null(unique, "")])
        owners = np.concatenate([parents, np.arange(batch.num_rows)])
        if not blank:
            filled = np.asarray(pc.not_equal(texts, "").to_numpy(zero_copy_only=False), bool)
            texts, owners = texts.filter(pa.array(filled)), owners[filled]
        return cls(batch, batch["physical_offset"].to_numpy(), texts, owners)

    def by_topic(self) -> Iterator[tuple[str | None, Ints]]:
        """Places of the keys of each topic, None for one that is not text."""
        coded = pc.dictionary_encode(self.batch["topic"])
        numbers = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)[self.owners]
        for number, topic in [(-1, None), *enumerate(coded.dictionary.to_pylist())]:
            places = np.flatnonzero(numbers == number)
            if len(places):
                yield topic, places

    def wanted(self, sieve: KeySieve) -> Flags:
        """Of each record, whether its topic is wanted."""
        topics = self.batch["topic"]
        found = (
            topics.is_valid() if sieve.topic is None else pc.fill_null(pc.equal(topics, sieve.topic), False)
        )
        return np.asarray(found.to_numpy(zero_copy_only=False), bool)

    def within(self, window: tuple[int | None, int | None]) -> Flags:
        """Of each record, whether it was stored in the window."""
        times = self.batch["store_timestamp"].to_numpy()
        low, high = window
        found = np.ones(len(times), bool) if low is None else times >= low
        return found if high is None else found & (times < high)

    def rows(
        self,
        topics: Sequence[str],
        places: Ints,
        sieve: KeySieve,
        wanted: Flags,
        place: dict[str, int],
        kind: int = Kind.CODE,
    ) -> Iterator[pa.RecordBatch]:
        """Rows for the keys at `places`, which are of one topic, as if the index was asked for `topics`.

        wanted: of each record, whether its keys count.
        """
        topic = self.batch["topic"][int(self.owners[places[0]])].as_py() or ""
        texts = self.texts.take(pa.array(places))
        lengths, hashes = hash_columns(texts)
        for some, codes in sieve.codes(topics, index_hashes(topic, powers_of(lengths), hashes)):
            owners = self.owners[places[some]]
            keys = pc.if_else(pa.array(wanted[owners]), texts.take(pa.array(some)), None)
            yield _rows(self.offsets[owners], kind, code=codes, key=keys, **place)


def _rows(offsets: Ints, kind: int, **more: Any) -> pa.RecordBatch:
    """Rows of `PROBES`; numbers are the same in all."""
    columns = {
        "physical_offset": pa.array(offsets),
        "kind": pa.repeat(pa.scalar(kind, pa.int8()), len(offsets)),
    }
    for name, value in more.items():
        if isinstance(value, int):
            columns[name] = pa.repeat(pa.scalar(value, pa.int64()), len(offsets))
        else:
            columns[name] = pa.array(value)
    return pa.RecordBatch.from_pydict(columns)
