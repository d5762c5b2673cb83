"""Records held against the consume queue entries that lie on disk: which lead to another place, or to none.

A start writes entries only behind the end of a queue. What lies in front of it stays as it is, and a consumer
is given whatever such an entry points at (`DefaultMessageStore#getMessage`).
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS, PRE_BLANK_SIZE
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import BYTES, ConsumeQueue
from rmqtool.broker.dispatch import CHUNK_ROWS, Codes, Dispatcher, MultiDispatchError
from rmqtool.broker.extension import codes_at
from rmqtool.broker.file_rules import light_numbers_are_zero
from rmqtool.broker.java import parse_long
from rmqtool.broker.mapped_files import MappedFile
from rmqtool.broker.queue_records import NO_CODE
from rmqtool.broker.units import chunks
from rmqtool.recovery.view import ImaginedFile
from rmqtool.scan.fields import DispatchColumn, Field
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.scan.torn import torn_records
from rmqtool.scan.units import BATCH_UNIT, UNIT, data_end, pre_blanks
from rmqtool.store.holes import STEP, data_windows
from rmqtool.store.names import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFiles
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.recovery.spans import Key, QueueSpans
    from rmqtool.scan.events import Records

    Ints = npt.NDArray[np.int64]
    Agree = Callable[[npt.NDArray[np.uint8], int, Ints, Ints, npt.NDArray[np.bool_]], tuple[int, int]]
    """`kernels.dispatch.agree_units`"""

_SPARSE = 64
"""entries that are read for one that is wanted, at most"""
"""records whose tags codes are made at once"""


@dataclass(slots=True)
class Matches:
    """matched: records that the entry at their queue offset leads to. wrong: those where it leads elsewhere.

    missed: messages that have no entry, a blank or zeros. beyond: of a plain queue those whose queue offset
    lies behind its end or in front of its files. first, first_missed: the lowest queue offset of the wrong
    ones, and of those missed in a batch queue. span: queue offsets [low, high) that records have, also those
    that no entry can have. wrong_tags, first_tags: matched ones whose entry has another tags code. displaced:
    wrong ones whose record states another physical offset than where it lies. taken: queue offsets
    [low, high) of records to which an entry leads that recovery of the queue takes away. ahead: the queue's
    last entry leads to a record that states a higher queue offset, as in light queues of release 5. further:
    without `enableMultiDispatch`, records that list the queue, whose topic has no directory; first_further:
    their lowest queue offset, last_further: their highest physical offset.
    """

    matched: int = 0
    wrong: int = 0
    missed: int = 0
    beyond: int = 0
    first: int | None = None
    first_missed: int | None = None
    span: tuple[int, int] | None = None
    wrong_tags: int = 0
    first_tags: int | None = None
    displaced: int = 0
    taken: tuple[int, int] | None = None
    ahead: bool = False
    further: int = 0
    first_further: int | None = None
    last_further: int = -1

    @property
    def compared(self) -> int:
        """Records that were held against an entry."""
        return self.matched + self.wrong + self.missed

    def add(self, other: Matches) -> None:
        """Both together."""
        self.matched += other.matched
        self.wrong += other.wrong
        self.missed += other.missed
        self.beyond += other.beyond
        self.wrong_tags += other.wrong_tags
        self.displaced += other.displaced
        self.first_tags = _lower(self.first_tags, other.first_tags)
        self.first = _lower(self.first, other.first)
        self.first_missed = _lower(self.first_missed, other.first_missed)
        self.span = _both(self.span, other.span)
        self.taken = _both(self.taken, other.taken)
        self.ahead = self.ahead or other.ahead
        self.further += other.further
        self.first_further = _lower(self.first_further, other.first_further)
        self.last_further = max(self.last_further, other.last_further)


def _both(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """The span that holds both."""
    spans = [found for found in (one, other) if found is not None]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _lower(one: int | None, other: int | None) -> int | None:
    return min((found for found in (one, other) if found is not None), default=None)


@dataclass(frozen=True, slots=True)
class WrongEntries:
    """Entries of a queue that do not lead to their message; `first`: queue offset of the first, if known.

    messages: those that consumers do not get, or not as they should.
    """

    topic: str
    queue_id: int
    path: str
    count: int
    first: int | None
    messages: int


def _span(run: QueueRecords) -> tuple[int, int] | None:
    """Queue offsets [low, high) of a run."""
    return (int(run.bases.min()), int((run.bases + run.messages).max())) if len(run) else None


def _displaced(run: QueueRecords) -> npt.NDArray[np.bool_]:
    """Which records of a run state another physical offset than where they lie."""
    return np.zeros(len(run), np.bool_) if run.in_place is None else ~run.in_place[run.chosen]


class PlainQueue:
    """The entries of one queue as they lie on disk.

    size: bytes of its files. begin: tells the first byte that its owner answers for (`minLogicOffset`). gone:
    files that its recovery deleted.
    """

    def __init__(
        self,
        files: tuple[MappedFile, ...],
        end: int,
        size: int,
        begin: Callable[[], int],
        gone: tuple[MappedFile, ...],
        extension: MappedFiles | None,
        agree: Agree,
    ) -> None:
        self._begin, self._agree = begin, agree
        self._files = [one for one in files if one.file is not None]
        self._bases = np.array([one.base for one in self._files], np.int64)
        self._end, self._size = end, size
        self._even = size > 0 and not (self._bases % size).any()
        self._extension = extension
        self._behind = [one for one in (*self._files[-1:], *gone) if one.file is not None]
        self._last_offset = self._offset_at(end - 1)
        self.found = Matches()

    def _offset_at(self, slot: int) -> int | None:
        """Physical offset in the entry at a slot, None where the files have none there."""
        number = int(np.searchsorted(self._bases, slot * BYTES, side="right")) - 1
        if slot < 0 or number < 0:
            return None
        # under a name that is not a multiple of the size, too (`MappedFile#selectMappedBuffer`)
        place = np.array([slot * BYTES % self._size // BYTES], np.int64)
        unit = _units(self._files[number], place)[0]
        return int(unit["physical_offset"]) if unit["size"] > 0 else None

    def append(self, run: QueueRecords) -> None:
        """Holds records against the entries at their slots (`ConsumeQueue#getIndexBuffer`).

        Names of files that were made begin at multiples of their size. Under another name the first one does
        not reach some of its own entries.
        """
        span = _span(run)
        self.found.add(Matches(span=span))
        if span is not None and self._leads_to_all(run, *span):
            self.found.add(Matches(matched=len(run)))
            return
        slots, offsets, sizes = run.slots, run.offsets, run.sizes
        if self._last_offset is not None and (last := offsets == self._last_offset).any():
            self.found.add(Matches(ahead=bool((slots[last] >= self._end).any())))
        self._take_away(slots, offsets, sizes)
        if not self._files:
            self.found.add(Matches(beyond=len(run)))
            return
        known = (slots >= 0) & (slots < self._end)
        places = np.where(known, slots, 0) * BYTES
        numbers = np.searchsorted(self._bases, places, side="right") - 1
        base = int(self._bases[0])
        begin = max(base, self._begin()) if base % self._size else base
        cut = known & (places < begin) & (places >= base // self._size * self._size)
        if cut.any():
            self.found.add(Matches(wrong=int(cut.sum()), first=int(slots[cut].min())))
        reached = known & (numbers >= 0) & ~cut
        self.found.add(Matches(beyond=int((~reached & ~cut).sum())))
        apart = reached & (places - self._bases[numbers] >= self._size)
        self.found.add(Matches(missed=int(apart.sum())))
        reached &= ~apart
        displaced, codes = _displaced(run), run.codes
        for number in np.flatnonzero(np.bincount(numbers[reached])).tolist():
            chosen = np.flatnonzero(reached & (numbers == number))
            units = _units(self._files[number], places[chosen] % self._size // BYTES)
            of_these = units, offsets[chosen], sizes[chosen], slots[chosen]
            self._compare(*of_these, displaced[chosen])
            self._compare_tags(*of_these, codes[chosen])

    def _leads_to_all(self, run: QueueRecords, low: int, high: int) -> bool:
        """Whether the entry at the slot of each record is its own in every field, as it is as a rule."""
        if not self._even or low < 0 or high > self._end or high - low > _SPARSE * len(run):
            return False
        right = np.zeros(len(run), np.bool_)
        for one in self._files:
            first = one.base // BYTES
            begin, end = max(low, first), min(high, first + self._size // BYTES)
            if begin < end and one.file is not None:
                with one.file.open("pread") as source:
                    raw = source.window((begin - first) * BYTES, (end - begin) * BYTES)
                    self._agree(raw, begin, run.columns, run.chosen, right)
        return bool(right.all())

    def _take_away(self, slots: Ints, offsets: Ints, sizes: Ints) -> None:
        """Records behind the end that the recovered queue has, with an entry there that leads to them."""
        for one in self._behind if len(slots) else ():
            first = one.base // BYTES
            there = np.flatnonzero((slots >= max(first, self._end)) & (slots < first + self._size // BYTES))
            if not len(there):
                continue
            units = _units(one, slots[there] - first)
            right = (units["physical_offset"] == offsets[there]) & (units["size"] == sizes[there])
            found = slots[there][right]
            if len(found):
                self.found.add(Matches(taken=(int(found.min()), int(found.max()) + 1)))

    def _compare_tags(
        self, units: npt.NDArray[Any], offsets: Ints, sizes: Ints, slots: Ints, codes: Ints
    ) -> None:
        right = (units["physical_offset"] == offsets) & (units["size"] == sizes)
        stored = units["tags_code"].astype(np.int64)
        wrong = right & (stored != codes) & (codes != NO_CODE)
        extended = np.flatnonzero(wrong & (stored <= EXT_MAX_ADDRESS))
        if len(extended) and self._extension is not None:
            wrong[extended] = codes_at(stored[extended], self._extension, "pread") != codes[extended]
        first = int(slots[wrong].min()) if wrong.any() else None
        self.found.add(Matches(wrong_tags=int(wrong.sum()), first_tags=first))

    def _compare(
        self,
        units: npt.NDArray[Any],
        offsets: Ints,
        sizes: Ints,
        slots: Ints,
        displaced: npt.NDArray[np.bool_],
    ) -> None:
        right = (units["physical_offset"] == offsets) & (units["size"] == sizes)
        blank = pre_blanks(units)
        wrong = ~right & (units["size"] > 0) & ~blank
        first = int(slots[wrong].min()) if wrong.any() else None
        missed = int((~right & ~wrong).sum())
        twice = int((wrong & displaced).sum())
        self.found.add(Matches(int(right.sum()), int(wrong.sum()), missed, first=first, displaced=twice))


class _BatchQueue:
    """The entries of one batch queue as they lie on disk, found by the queue offset that each begins at."""

    def __init__(self, files: tuple[MappedFile, ...], end: int) -> None:
        self._files = [one for one in files if one.file is not None]
        self._end = end
        self.found = Matches()

    def append(self, run: QueueRecords) -> None:
        """Holds records against the entries of their first messages."""
        self.found.add(Matches(span=_span(run)))
        reached = (run.bases >= 0) & (run.bases < self._end)
        bases, counts = run.bases[reached], run.messages[reached]
        offsets, sizes = run.offsets[reached], run.sizes[reached]
        right, there, tagged = (np.zeros(len(bases), np.bool_) for _ in range(3))
        codes = run.codes[reached]
        stated = run.slots[reached] == bases  # clients count from what the record says
        parts = (units for one in self._files for units in batch_entries(one))
        for stored in parts if len(bases) else ():
            units = np.sort(stored, order="base_offset", kind="stable")
            own = units["base_offset"].astype(np.int64)
            places = np.minimum(np.searchsorted(own, bases), len(own) - 1)
            found, begins = units[places], own[places] == bases
            same = (found["physical_offset"] == offsets) & (found["size"] == sizes)
            same &= begins & (found["batch_size"] == counts) & stated
            right |= same
            tagged |= same & (found["tags_code"] == codes)
            there |= begins
        wrong = there & ~right
        other = right & ~tagged & (codes != NO_CODE)
        twice = int((wrong & _displaced(run)[reached]).sum())
        first, gone, tags = (
            int(bases[some].min()) if some.any() else None for some in (wrong, ~there, other)
        )
        missed = int(counts[~there].sum())
        self.found.add(Matches(int(right.sum()), int(wrong.sum()), missed, first=first, first_missed=gone))
        self.found.add(Matches(wrong_tags=int(other.sum()), first_tags=tags, displaced=twice))


def batch_entries(one: MappedFile) -> Iterator[npt.NDArray[Any]]:
    """The entries of a batch queue's file that count as data, in parts; what is all zero is none."""
    if one.file is None:
        return
    with one.file.open("pread") as source:
        end = min(data_end(source, BATCH_UNIT.itemsize), one.wrote) // BATCH_UNIT.itemsize
        step = STEP // BATCH_UNIT.itemsize * BATCH_UNIT.itemsize
        for _, window in data_windows(source, 0, end * BATCH_UNIT.itemsize, step):
            there = window.reshape(-1, BATCH_UNIT.itemsize).any(axis=1)
            units = window.view(BATCH_UNIT)[there]
            if len(units):
                yield units


def _units(one: MappedFile, numbers: Ints) -> npt.NDArray[Any]:
    """Entries by their number in a file; zeros behind its end."""
    found = np.zeros(len(numbers), UNIT)
    if one.file is None:
        return found
    low, high = int(numbers.min()), int(numbers.max()) + 1
    with one.file.open("pread") as source:
        if high - low <= _SPARSE * len(numbers):
            ranges = [(low, high, np.arange(len(numbers)))]
        else:
            ranges = [(int(number), int(number) + 1, np.array([at])) for at, number in enumerate(numbers)]
        for begin, end, which in ranges:
            raw = source.window(begin * BYTES, (end - begin) * BYTES)
            units = raw[: len(raw) // BYTES * BYTES].view(UNIT)
            there = numbers[which] - begin < len(units)
            found[which[there]] = units[numbers[which[there]] - begin]
    return found


def _begin_of(queue: AnyQueue) -> int:
    return queue.min_logical if isinstance(queue, ConsumeQueue) else 0


def _gone(start: Start, queue: AnyQueue) -> Iterator[MappedFile]:
    """Files that recovery of the queue deleted."""
    for path in queue.files.deleted:
        file = start.store.file(path)
        base = parse_long(path.rpartition("/")[2])
        if file is not None and file.regular and base is not None:
            yield MappedFile(base, file.size, path, file)


class _Torn:
    """Where records with torn properties lie, whose tags tell nothing about an entry; the last ones only."""

    def __init__(self) -> None:
        self._places: deque[Ints] = deque()
        self._count = 0

    def take(self, run: Records) -> None:
        """Notes those of a run on its way to the dispatcher, which holds back no more than a chunk."""
        torn = torn_records(run)
        if torn.any():
            self._places.append(run.rows[torn, Field.STORED_PHYSICAL_OFFSET])
            self._count += len(self._places[-1])
        while self._places and self._count - len(self._places[0]) > CHUNK_ROWS + len(run.rows):
            self._count -= len(self._places.popleft())

    def __bool__(self) -> bool:
        """Whether any were noted."""
        return bool(self._places)

    def among(self, offsets: Ints) -> npt.NDArray[np.bool_]:
        """Which of these are such places."""
        return np.isin(offsets, np.concatenate(self._places))


class UnitMatcher:
    """Make it once the queues are loaded, feed it with runs of the log, then ask for the `result`."""

    def __init__(self, start: Start) -> None:
        self._known = {
            key: (
                type(queue) is BatchConsumeQueue,
                tuple(queue.files.files),
                queue.recovered_max,
                queue.files.size,
                partial(_begin_of, queue),
                tuple(_gone(start, queue)),
            )
            for key, queue in start.queues.items()
        }
        self._extensions = {
            key: replace(found, files=list(found.files)) for key, found in start.extensions.items()
        }
        self._queues: dict[Key, PlainQueue | _BatchQueue] = {}
        self._torn = _Torn()
        self._agree: Agree = start.reading.kernels.dispatch.agree_units
        batches = {topic for (topic, _), (batch, *_) in self._known.items() if batch}
        self._feeds = start.settings.multi_dispatch
        self._lmq = start.settings.lmq if self._feeds else light_numbers_are_zero(start.store)
        self._multi_dispatch = start.traits.multi_dispatch
        self._topics = {topic for topic, _ in self._known}
        self._dispatcher = Dispatcher(
            self._append,
            start.reading.kernels,
            multi_dispatch=self._multi_dispatch,
            lmq=self._lmq,
            is_batch=(lambda topic, _: topic in batches) if batches else None,
            codes=Codes.HASHES,
        )
        self._dispatcher.throws = self._feeds

    def basis(self) -> bytes | None:
        """Stands for all that decides what records are held against; None where nothing else stands for it.

        Of starts on one store, and on what else it may be thought to be.
        """
        found = blake2b(repr((self._multi_dispatch, self._feeds, self._lmq)).encode())
        for key, (batch, files, end, size, begin, gone) in sorted(self._known.items()):
            extension = self._extensions[key].files if key in self._extensions else []
            if any(isinstance(one.file, ImaginedFile) for one in (*files, *gone, *extension)):
                return None
            lie = [(one.path, batch and one.wrote) for one in files if one.file is not None]
            further = [one.path for one in gone], [(one.path, one.wrote) for one in extension]
            found.update(repr((key, batch, end, size, begin(), lie, further)).encode())
        return found.digest()

    def _append(self, key: Key, run: QueueRecords) -> None:
        if self._torn:
            torn = self._torn.among(run.offsets)
            run.columns[DispatchColumn.CODE, run.chosen[torn]] = NO_CODE
        if run.own is not None and not self._feeds:
            self._note_further(key, run)
            run = run.without_others()
        if len(run):
            self._queue(*key).append(run)

    def _note_further(self, key: Key, run: QueueRecords) -> None:
        """What a start without `enableMultiDispatch` builds no entry of, in a queue that has none at all."""
        if key[0] in self._topics or run.own is None or run.own.all():
            return
        others = ~run.own
        first, last = int(run.slots[others].min()), int(run.offsets[others].max())
        found = Matches(further=int(others.sum()), first_further=first, last_further=last)
        self._queue(*key).found.add(found)

    def _queue(self, topic: str, queue_id: int) -> PlainQueue | _BatchQueue:
        found = self._queues.get((topic, queue_id))
        if found is None:
            none = False, (), 0, 0, int, ()
            batch, files, end, size, begin, gone = self._known.get((topic, queue_id), none)
            extension = self._extension(topic, queue_id)
            found = (
                _BatchQueue(files, end)
                if batch
                else PlainQueue(files, end, size, begin, gone, extension, self._agree)
            )
            self._queues[topic, queue_id] = found
        return found

    def _extension(self, topic: str, queue_id: int) -> MappedFiles | None:
        """The extension files of a queue; without them no tags code is an address."""
        found = self._extensions.get((topic, queue_id))
        return found if found is not None and found.files else None

    def take(self, run: Records, base: int, spans: QueueSpans) -> None:
        """A run of records, intact or not: an entry that leads to a damaged one leads to the right place.

        spans: takes the records as they were placed here, too.
        """
        self._torn.take(run)
        with suppress(MultiDispatchError):  # the start tells of it
            self._dispatcher.take(run, base, spans.take)

    def result(self) -> dict[Key, Matches]:
        """What was found since the last call."""
        self._dispatcher.flush()
        found = {key: queue.found for key, queue in self._queues.items() if queue.found != Matches()}
        self._queues = {}
        return found


def wrong_entries(
    start: Start, matches: Mapping[Key, Matches], unnamed: Iterable[Ints], *, whole: bool
) -> tuple[WrongEntries, ...]:
    """Queue by queue the entries that do not lead to their message.

    matches: of all records that were read. whole: that was the whole log, so that an entry without a record
    leads to none. Of a light queue with such entries nothing tells the end (`queue_ends`), so messages behind
    it that the start does not append are counted here. A record whose topic no queue can have, or that states
    another physical offset, is counted where it was seen (`Witness.harmed`), not once more with the entry of
    its queue; `unnamed`: where those with such a topic lie.
    """
    elsewhere = np.concatenate([*unnamed, np.zeros(0, np.int64)])
    found = []
    for key, queue in sorted(start.queues.items()):
        if not queue.recovered_max:
            continue
        seen = matches.get(key, Matches())
        light = key[0].startswith(LMQ_PREFIX)
        known = whole and (start.settings.multi_dispatch or not light)
        inside, counted = _into_log(start, queue, seen, elsewhere) if known else (0, 0)
        misdirected = max(inside - seen.matched, 0)
        count = max(seen.wrong, misdirected)
        if count:
            behind = max(seen.beyond - queue.appended, 0) if light else 0
            own = max(seen.wrong, misdirected - counted) - seen.displaced
            messages = max(own, seen.wrong + seen.missed + behind if light else 0)
            found.append(WrongEntries(*key, queue.files.directory, count, seen.first, messages))
    return tuple(found)


def wrong_tags(start: Start, matches: Mapping[Key, Matches]) -> tuple[WrongEntries, ...]:
    """Queue by queue the entries that lead to their message and have another tags code than that."""
    return tuple(
        WrongEntries(
            *key, start.queues[key].files.directory, seen.wrong_tags, seen.first_tags, seen.wrong_tags
        )
        for key, seen in sorted(matches.items())
        if seen.wrong_tags and key in start.queues
    )


def _into_log(start: Start, queue: AnyQueue, seen: Matches, unnamed: Ints) -> tuple[int, int]:
    """Entries that lead into the log, and those of them that lead to a record whose topic no queue can have.

    Not counted (0) where as many records were matched as can be. A zero entry that is taken for a message
    ends truncation, so that entries in front of it stay, also those that lead behind the end of the log.
    """
    low, high = start.log.min_offset, start.log.max_offset
    if not isinstance(queue, BatchConsumeQueue):
        end = min(queue.recovered_max, queue.max_offset)
        if queue.phantom is not None:
            high = LONG_MAX
        elif seen.matched >= end - max(queue.min_offset, 0):
            return 0, 0
        parts = _plain_offsets(queue, end)
    else:
        parts = (units["physical_offset"] for one in queue.files.files for units in batch_entries(one))
    count = counted = 0
    for offsets in parts:
        inside = offsets[(offsets >= low) & (offsets < high)]
        count += len(inside)
        counted += int(np.isin(inside, unnamed).sum()) if len(unnamed) else 0
    return count, counted


def _plain_offsets(queue: ConsumeQueue, end: int) -> Iterator[Ints]:
    """Physical offsets in the entries of a plain queue in front of slot `end`, but in blank and zero ones."""
    for one in queue.files.files:
        stop = min(one.wrote // BYTES, end - one.base // BYTES)
        if one.file is None or stop <= 0:
            continue
        for chunk in chunks(one, "pread", stop, -1):
            blank = (chunk.offsets == 0) & (chunk.sizes == PRE_BLANK_SIZE)
            yield chunk.offsets[(chunk.sizes > 0) & ~blank]
