"""Records by key: through the index where it answers, by reading the log where it does not.

Every candidate is read and compared by its real topic and keys; a hash alone proves nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.index import FIRST_ITEM
from rmqtool.errors import RmqtoolError
from rmqtool.query.chain_mates import MOST, misplaced, record_hashes
from rmqtool.query.displaced import displaced_at
from rmqtool.query.index_coverage import Coverage, coverage
from rmqtool.query.index_lookup import open_index
from rmqtool.query.key_scan import COMPARED, KeyScan
from rmqtool.query.lost_end import lost_end
from rmqtool.query.lost_place import LOOKED_AT, where_items_lead, without_key
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.segment_times import CLOCK_SLACK
from rmqtool.query.topics import known_topics, names_all_topics
from rmqtool.scan.log_end import log_span
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import Incomplete, holes_in, rest_of_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.index_coverage import IndexFileView
    from rmqtool.query.index_lookup import IndexItem, IndexReader
    from rmqtool.query.wanted_keys import WantedKeys
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_SLACK_MILLIS = 1000
"""items hold whole seconds"""
FEW_HASHES = 20_000
"""chains (keys times topics) that are followed one by one; for more, whole columns of hashes are compared"""


class KeySource(StrEnum):
    """Where keys are looked up."""

    AUTO = "auto"
    INDEX = "index"
    SCAN = "scan"


@dataclass
class KeyAnswer:
    """Records with wanted keys.

    matches: physical offset → the wanted keys that the record has. source: `index`, `scan`, or `index+scan`.
    candidates: records of the window that were compared. collisions: those with the hash but without the key.
    window: [from, to) in store time (ms), None without bound. topics: how many the index was asked for.
    files: index files asked. scanned: ranges of physical offsets that were read, rest: those that no index
    answers for. setbacks: path → why an
    index file was not used. missing: items that point to no record, or to one without a key of their hash:
    the item is wrong, or properties, which no CRC covers. not_covered: rows as in `store.coverage`. strays:
    see `chain_mates.misplaced`.
    """

    window: tuple[int | None, int | None]
    matches: dict[int, frozenset[str]] = field(default_factory=dict)
    candidates: int = 0
    collisions: int = 0
    topics: int = 0
    files: list[str] = field(default_factory=list)
    scanned: list[tuple[int, int]] = field(default_factory=list)
    rest: list[tuple[int, int]] = field(default_factory=list)
    setbacks: dict[str, str] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    not_covered: list[Row] = field(default_factory=list)
    strays: dict[str, set[int]] = field(default_factory=dict)

    def stray_rows(self) -> list[Row]:
        """Rows of `not_covered` for the files with `strays`, where the log is not read instead."""
        return [
            {"path": path, "reason": Incomplete.DAMAGE, "error": self.setbacks[path]} for path in self.strays
        ]

    def outside_rest(self) -> dict[int, frozenset[str]]:
        """The matches without those that a scan of `rest` finds, too."""
        starts = [start for start, _ in self.rest]
        ends = [0, *(end for _, end in self.rest)]
        return {at: keys for at, keys in self.matches.items() if at >= ends[bisect_right(starts, at)]}

    @property
    def source(self) -> str:
        """What the answer comes from."""
        parts = ["index"] * bool(self.files) + ["scan"] * bool(self.scanned)
        return "+".join(parts) or "index"


def find_keys(
    store: Store,
    wanted: WantedKeys,
    *,
    window: tuple[int | None, int | None] = (None, None),
    source: KeySource = KeySource.AUTO,
    reading: ReadOptions,
) -> KeyAnswer:
    """All records of the store time `window` with one of the wanted keys.

    With `auto` the index answers for what it covers, and the rest of the log is read; with `index` the rest
    is `not_covered`; with `scan` the log is read from end to end.
    Without `wanted.topic` the index is asked for every topic that queues or topics.json name; where nothing
    names any, the log is read.
    """
    answer = KeyAnswer(window)
    low, high = log_span(store)
    covered = (
        _by_index(store, wanted, answer, high) if asks_index(store, wanted.topic, source) else Coverage()
    )
    rest = answer.rest = covered.uncovered(low, high)
    if source is KeySource.INDEX:
        low = store.segments.first_offset
        inside = sorted(
            (one for one in answer.missing if one.physical_offset >= low), key=lambda one: one.physical_offset
        )
        answer.not_covered += items_without_record(inside[:LOOKED_AT], len(inside))
        answer.not_covered += answer.stray_rows()
        for start, end in rest:
            answer.not_covered += rest_of_log(list(store.segments), start, Incomplete.LIMIT, end=end)
        return answer
    answer.not_covered += lost_end(store, MessageFilter(store_from=window[0], store_to=window[1]))
    if rest:
        _by_scan(store, wanted, answer, rest, reading)
    places = [one.physical_offset for one in answer.missing]
    answer.not_covered += [*where_items_lead(store.segments, places), *displaced_at(store, places)]
    return answer


def items_without_record(first: Sequence[Missing], count: int) -> list[Row]:
    """Rows of `not_covered` for places of the log that items lead to: the first ones, and how many more."""
    rows = [one.row() for one in first]
    if count > len(rows):
        more = f"{count - len(rows)} further places that the index knows hold no record"
        rows.append({"path": "commitlog", "reason": Incomplete.DAMAGE, "error": more})
    return rows


def asks_index(store: Store, topic: str | None, source: KeySource) -> bool:
    """Whether the index is asked: where not all topics are known, it cannot answer for all of them."""
    unknown_topics = topic is None and not names_all_topics(store)
    return source is KeySource.INDEX or (source is KeySource.AUTO and not unknown_topics)


def index_topics(store: Store, topic: str | None) -> list[str]:
    """Topics that the index is asked for."""
    return [topic] if topic is not None else known_topics(store)


def compares_all(keys: int, topics: int) -> bool:
    """Whether so many keys in so many topics are looked for in whole columns of hashes, not along chains."""
    return keys * topics > FEW_HASHES


def _by_index(store: Store, wanted: WantedKeys, answer: KeyAnswer, log_end: int) -> Coverage:
    known: dict[int, IndexGeometry] = {}
    covered = coverage(store, log_end, known)
    topics = index_topics(store, wanted.topic)
    many = compares_all(len(wanted.keys), len(topics))
    answer.topics = len(topics)
    hashes = np.unique(
        np.concatenate([wanted.in_topic(topic) for topic in topics] or [np.empty(0, np.int32)])
    )
    asked = frozenset(hashes.tolist())
    unused = [file for file in store.index_files() if file.display_path in covered.setbacks]
    _note_lost(store, answer, unused, known, hashes, many=many)
    used: list[IndexFileView] = []
    found_in: list[tuple[IndexFileView, set[int]]] = []
    beside: list[IndexItem] = []
    for view in covered.files:
        if outside(answer.window, view):
            used.append(view)
            continue
        try:
            with open_index(store, view.file, known) as reader:
                if reader is None:
                    continue
                found = _items(reader, hashes, answer.window, many=many, beside=beside)
                setback = reader.broken
        except RmqtoolError as error:
            found, setback = set(), str(error)
        found_in.append((view, found))
        if setback is not None:
            covered.setbacks[view.file.display_path] = setback
    misdirected = _compare(store, wanted, answer, asked, sorted(set().union(*(one for _, one in found_in))))
    strays = answer.strays = misplaced(store.segments, beside)
    for view, found in found_in:
        wrong = (misdirected & found) | strays.get(view.file.display_path, set())
        if wrong:
            covered.setbacks.setdefault(
                view.file.display_path, f"an index entry leads to {min(wrong)}, where its key is not"
            )
        if view.file.display_path not in covered.setbacks:
            used.append(view)
            answer.files.append(view.file.display_path)
    covered.files = used
    answer.setbacks = covered.setbacks
    return covered


def _note_lost(
    store: Store,
    answer: KeyAnswer,
    files: Iterable[StoreFile],
    known: dict[int, IndexGeometry],
    hashes: np.ndarray,
    *,
    many: bool,
) -> None:
    """Adds places to which items lead in files that do not answer, without a record or with a damaged one.

    A file whose last record is lost is one, and may know where the wanted one was.
    """
    places: set[int] = set()
    for file in files:
        with suppress(RmqtoolError), open_index(store, file, known) as reader:
            if reader is not None:
                places |= _items(reader, hashes, answer.window, many=many)
    damaged: list[Damaged] = []
    asked, without = frozenset(hashes.tolist()), set[int]()
    for part in pick(store.segments, sorted(places), COMPARED, damaged=damaged):
        if isinstance(part, Missing):
            answer.missing.append(part)
        else:
            without |= _without_hash(part, asked)
    answer.not_covered += (one.row() for one in damaged if one.physical_offset in without)


def outside(window: tuple[int | None, int | None], view: IndexFileView) -> bool:
    """Whether no record of an index file lies in the window of store time, by those at its ends."""
    first, last = sorted((view.first_timestamp, view.last_timestamp))
    return _outside(window, first, last, CLOCK_SLACK)


def _items(
    reader: IndexReader,
    hashes: np.ndarray,
    window: tuple[int | None, int | None],
    *,
    many: bool,
    beside: list[IndexItem] | None = None,
) -> set[int]:
    """Where items with these hashes lead; `beside` takes the others of their chains."""
    if many:
        return set(reader.offsets_of(hashes).tolist())
    asked = set(hashes.tolist())
    found: dict[int, IndexItem] = {}
    for value in asked:
        for one in reader.chain(value):
            if one.key_hash in asked:
                found[one.number] = one
            elif beside is not None and len(beside) < MOST:
                beside.append(one)
    reader.prove(hashes, {one.physical_offset for one in found.values()})
    return {one.physical_offset for one in found.values() if not _too_far(one, window)}


def _too_far(item: IndexItem, window: tuple[int | None, int | None]) -> bool:
    """Whether the time of an item lies outside of the window; a negative difference tells nothing.

    Nor does the first one's, which counts from the end of the file before (`IndexFile#putKey`).
    """
    if item.time_diff <= 0 or item.number == FIRST_ITEM:
        return False
    time = item.begin_timestamp + item.time_diff * 1000
    return _outside(window, time, time, _SLACK_MILLIS)


def _outside(window: tuple[int | None, int | None], first: int, last: int, slack: int) -> bool:
    low, high = window
    return (low is not None and last + slack < low) or (high is not None and first - slack >= high)


def _compare(
    store: Store, wanted: WantedKeys, answer: KeyAnswer, asked: frozenset[int], offsets: list[int]
) -> set[int]:
    """Reads the candidates and keeps those that have a wanted key.

    Returns where items lead astray: no record lies there although the log reaches so far back, or one without
    any key of the hashes `asked`. What such an item stood for may be anywhere.
    """
    misdirected: set[int] = set()
    known = {one.physical_offset for one in answer.missing}  # from files that do not answer
    damaged: list[Damaged] = []
    for part in pick(store.segments, offsets, COMPARED, damaged=damaged):
        if isinstance(part, Missing):
            if part.physical_offset not in known:
                answer.missing.append(part)
            if part.physical_offset >= store.segments.first_offset:
                misdirected.add(part.physical_offset)
            continue
        misdirected |= _without_hash(part, asked)
        inside = _inside(part, answer.window)
        answer.candidates += inside.num_rows
        for offset, keys in matching(inside, wanted, answer.window):
            answer.matches[offset] = keys
    answer.collisions += answer.candidates - len(answer.matches)
    # a record that lost its body may have lost the key, too, by which the index knew it
    answer.not_covered += (one.row() for one in damaged if one.physical_offset in misdirected)
    known |= {one.physical_offset for one in answer.missing}
    answer.missing += map(without_key, sorted(misdirected - known))
    return misdirected


def _inside(batch: pa.RecordBatch, window: tuple[int | None, int | None]) -> pa.RecordBatch:
    """The records of the window: an item tells the second only, or nothing."""
    import pyarrow as pa

    low, high = window
    times = batch["store_timestamp"].to_numpy()
    kept = np.ones(len(times), np.bool_) if low is None else times >= low
    return batch.filter(pa.array(kept if high is None else kept & (times < high)))


def _without_hash(batch: pa.RecordBatch, asked: frozenset[int]) -> set[int]:
    """Physical offsets of records that have no key with one of the hashes."""
    return {offset for offset, own in record_hashes(batch).items() if asked.isdisjoint(own)}


def matching(
    batch: pa.RecordBatch, wanted: WantedKeys, window: tuple[int | None, int | None]
) -> Iterator[tuple[int, frozenset[str]]]:
    """(physical offset, wanted keys) of the records of the window that have some, by topic and key."""
    low, high = window
    columns = (batch[name].to_pylist() for name in COMPARED)
    for offset, topic, keys, uniq_key, time in zip(*columns, strict=True):
        if (
            not wanted.matches(topic)
            or (low is not None and time < low)
            or (high is not None and time >= high)
        ):
            continue
        have = wanted.of_record(keys, uniq_key)
        if have:
            yield offset, have


def _by_scan(
    store: Store, wanted: WantedKeys, answer: KeyAnswer, ranges: list[tuple[int, int]], reading: ReadOptions
) -> None:
    scan = KeyScan(wanted, answer.window, reading)
    answer.not_covered += holes_in(store.segments, ranges)
    wanted_bytes = sum(end - start for start, end in ranges)  # of the log, which may have holes
    reading.expects(min(wanted_bytes, sum(one.size for one in store.segments)))
    reached = ranges[0][0]
    try:
        for start, end in ranges:
            reached = start
            answer.scanned.append((start, end))
            for batch in scan.read(store.segments, start, end):
                found = dict(matching(batch, wanted, answer.window))
                answer.matches |= found
                answer.candidates += batch.num_rows
                answer.collisions += batch.num_rows - len(found)
                reached = max(reached, scan.reached)
    except KeyboardInterrupt:
        answer.not_covered += rest_of_log(
            list(store.segments), reached, Incomplete.INTERRUPTED, end=ranges[-1][1]
        )
    answer.not_covered += scan.not_covered
