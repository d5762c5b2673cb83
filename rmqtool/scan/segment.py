"""One segment file from its first byte to its last: records, blanks, gaps, tail.

After bytes that are not a record the scan looks for the next place that holds one, reports what lies between
as a gap, and goes on there. So it does after bytes that cannot be read, in a `ZeroFilledSource`.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, cast

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.scan.earlier_life import BEHIND, FRONT, HEAD, Times, begins_record, is_left_over
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Event, Gap, Records, Tail, TailContent
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, CrcState, Field, Status, Stop
from rmqtool.scan.moving import TornTailRetry
from rmqtool.scan.readable import Readable
from rmqtool.scan.recent_times import BELIEVED, Earlier, RecentTimes
from rmqtool.scan.sound import MOST_BYTES, Passed, Run
from rmqtool.scan.under_filler import under_filler
from rmqtool.scan.windows import Windows

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator, Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.sound import Runs
    from rmqtool.store.bytes import ByteSource

    Mask = npt.NDArray[np.bool_]

STEP = 4 << 20
"""bytes that are searched before the file is asked again whether a hole follows"""

_LEADING_ZEROS = 3
"""with so many zero bytes of its total size a record may begin"""

_FOLLOWS = frozenset({Stop.ROWS_FULL, Stop.END, Stop.BLANK})
"""what stands behind a record whose size is right"""

_LEAST_LEFT = 8
"""part of a window that must be left of one for records by their sums behind what has something to tell"""

LOOK_BACK = 1 << 16
"""bytes in front of where a scan began in which it looks for such records, if it has not met enough"""

_NEAR = 1 << 16
"""bytes that are read at once for the records right behind a gap"""

_LOOK_FURTHER = 8
"""times as many where there are not enough in them, either"""

BATCH_ROWS = 16_384
"""records in one `Records` event: 3.5 MiB of rows, small enough to stay in a shared cache"""


class SegmentScan:
    """Iterate once over the events of one segment.

    source: the bytes. base: physical offset of its first byte. checks: how much to look at. active: no later
    segment holds data, so what follows the last record is a tail rather than damage. previous_timestamp:
    store timestamp (ms) of the last record before this segment, when known. keep_stale: yield records behind
    the end of the active segment as records instead of one `Tail`. tell_stale: with that, the `Gap` in front
    of such records says so. past_blanks: where a record lies at its own place behind a filler of the right
    length, the filler is a `Gap` (reason `Stop.BLANK`) and the scan
    goes on with that record: who asks for it decides which of the two is right. false_blanks: the same, but
    only where that record is no older than the last one in front; older ones are left of a log that was cut
    there and went on. With both a filler whose header lies on the front of such a record is a gap, too, of
    that record alone where nothing else is behind it: `expected` is its size then. moving: a broker may be
    writing, so what looks bad in the active segment is read again before it is reported (`moving.PATIENCE`).
    stop: once set, the scan ends with `Stopped`. step: bytes of a search for the next record. until: position
    behind which nothing is read ahead. window_bytes: how much is read at once.
    """

    def __init__(  # noqa: PLR0913 - all but two are options
        self,
        source: ByteSource,
        base: int,
        *,
        checks: Check = Check.ALL,
        active: bool = True,
        previous_timestamp: int | None = None,
        keep_stale: bool = False,
        tell_stale: bool = False,
        past_blanks: bool = False,
        false_blanks: bool = False,
        start: int = 0,
        batch_rows: int = BATCH_ROWS,
        kernels: Kernels | None = None,
        moving: bool = False,
        stop: threading.Event | None = None,
        step: int = STEP,
        until: int | None = None,
        window_bytes: int | None = None,
    ) -> None:
        import numpy as np

        self._windows = Windows(source, stop, until, window_bytes)
        self._until = source.size if until is None else min(until, source.size)
        self._ahead = source.window_bytes if window_bytes is None else window_bytes
        self._stop = stop
        self._step = step
        self._source = source
        self._size = source.size
        self._base = base
        self._checks = int(checks)
        self._active = active
        self._recent = RecentTimes(previous_timestamp)
        self._unseen = 0, start
        self._times_behind: deque[tuple[int, bool, Times]] = deque()
        """position, whether it lies where it says, and times of records behind the gap met last"""
        self._runs_ahead: Iterator[Records] = iter(())
        self._shift = 0
        self._keep_stale, self._tell_stale = keep_stale, tell_stale
        self._past_blanks = past_blanks
        self._false_blanks = false_blanks
        self._start = start
        self._moving = moving and active
        self._settling = TornTailRetry()
        self._readable = Readable(source, start)
        self._kernels = kernels or choose_kernels(source.size)
        self._rows = np.empty((batch_rows, ROW_WIDTH), np.int64)
        self._scratch = np.empty((1, ROW_WIDTH), np.int64)
        self._probe = np.empty((1, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    def __iter__(self) -> Iterator[Event]:
        return cast("Iterator[Event]", self.summed(None))

    def summed(self, sums: Runs[Run] | None) -> Iterator[Event | Run]:
        """The events, with records that `sums` takes by their sums; in a log that moves it takes none."""
        for event in self._events(None if self._moving else sums):
            if isinstance(event, Passed):
                self._readable.passed(event.end)
                yield event
            else:
                yield from self._readable.readable(event)

    def reread(self, run: Records) -> Iterator[Event]:
        """The run with its bytes read once more, after `ByteSource.had_fault`, less what cannot be read."""
        start = int(run.rows[0, Field.POSITION])
        end = int(run.rows[-1, Field.POSITION] + run.rows[-1, Field.STORE_SIZE])
        window = self._source.window(start, end - start)
        yield from self._readable.readable(Records(run.rows, window, start))

    def _events(self, sums: Runs[Run] | None) -> Iterator[Event | Run]:
        """As if every byte could be read."""
        position = self._start
        while True:
            position = yield from self._sounds(sums, position)
            records, at, stop, expected, found = self._walk(position, self._rows)
            filler = stop is Stop.BLANK and expected == found
            if self._moving and self._settling.waited(records, at, stop, whole=filler):
                self._windows.forget()
                continue
            position = at
            if records is not None:
                records, position, gap = self._without_false_end(records, position, stop)
            else:
                gap = None
            if records is not None:
                self._remember(records)
                yield records
            if gap is not None:
                self._recent.end_run()
                yield gap
            if stop is Stop.ROWS_FULL or gap is not None:
                continue
            if stop is Stop.END or filler:
                if filler:
                    behind, expected = self._live_behind(position, stop)
                    if behind is not None:
                        yield Gap(position, behind - position, stop, expected, found)
                        position = behind
                        continue
                    yield Blank(position, self._size - position, found)
                yield End(position, stop, expected, found)
                return
            valid_end = position
            event, behind = self._behind(position, stop, expected, found)
            if self._moving and self._written_meanwhile(position, stop, event):
                continue
            position = behind
            yield event
            if not isinstance(event, Gap) or position == self._size:
                yield End(valid_end, stop, expected, found)
                return

    def _sounds(self, sums: Runs[Run] | None, position: int) -> Generator[Run, None, int]:
        """Records that `sums` takes from `position` on; where they end."""
        need = self._ahead // _LEAST_LEFT
        while sums is not None and (found := self._sound(sums, position, need)) is not None:
            position, self._shift, self._unseen = found.end, 0, (found.start, found.end)
            self._recent.restart(found.last_time, [])
            yield found
            need = self._ahead if sums.cut else 0
        return position

    def _sound(self, sums: Runs[Run], position: int, need: int) -> Run | None:
        left = self._until - position
        if left <= 0:
            return None
        window, origin = self._windows.at(position, min(need, left))
        if not self._readable.whole:
            return None
        place = self._size, self._base, position + min(left, MOST_BYTES)
        found = sums(window, position - origin, origin, place)
        return None if self._windows.had_fault() else found

    def _without_false_end(
        self, records: Records, end: int, stop: Stop
    ) -> tuple[Records | None, int, Gap | None]:
        """Records up to `end` without a last one whose size is false, where to read on, and its gap.

        Bytes from elsewhere may begin with a whole header over a record that is shorter: what states another
        place, has nothing behind it, and covers the front of a record at its own place, is not a record.
        """
        last = records.rows[-1]
        start = int(last[Field.POSITION])
        if int(last[Field.STORED_PHYSICAL_OFFSET]) - self._base == start or stop in (Stop.END, Stop.BLANK):
            return records, end, None
        front = Records(records.rows[:-1], records.window, records.origin) if len(records.rows) > 1 else None
        if stop is Stop.ROWS_FULL and front is not None:  # what follows is not known yet
            return front, start, None
        if stop is Stop.ROWS_FULL and self._walk(end, self._probe)[2] in _FOLLOWS:
            return records, end, None
        size = int(last[Field.STORE_SIZE])
        place, kind = self._find(start + 1, 0, any_offset=False, limit=end)
        if place is None or kind is Stop.BLANK or not start < place < end:
            return records, end, None
        if place + int(self._scratch[0, Field.STORE_SIZE]) <= end:
            return records, end, None
        return front, place, Gap(start, place - start, Stop.SIZE_MISMATCH, place - start, size)

    def _written_meanwhile(self, position: int, stop: Stop, event: Event) -> bool:
        """Whether records begin at `position` now, after the search for the next one took its time."""
        if isinstance(event, Tail) and event.content is TailContent.ZERO:
            return False
        self._windows.forget()
        records, _, now, _, _ = self._walk(position, self._probe)
        return records is not None or now is not stop

    def _walk(self, position: int, rows: npt.NDArray[np.int64]) -> tuple[Records | None, int, Stop, int, int]:
        """Read on from `position`, with a larger window where a record needs one."""
        need = 0
        while True:
            window, origin = self._windows.at(position, need)
            self._kernels.walk(
                window,
                position - origin,
                origin,
                self._size,
                self._base,
                self._checks,
                rows,
                self._status,
            )
            if self._windows.had_fault():
                continue
            count, at, stop, expected, found = self._status[: Status.FOUND + 1].tolist()
            if stop == Stop.NEED_MORE:
                if count == 0:
                    need = expected
                    continue
                stop = Stop.ROWS_FULL
            records = Records(rows[:count], window, origin) if count else None
            return records, at, Stop(stop), expected, found

    def _remember(self, records: Records) -> None:
        rows, last = records.rows[-BELIEVED:], records.rows[-1]
        sound = (rows[:, Field.CRC_STATE] != CrcState.BAD).tolist()
        self._recent.add(map(Earlier, self._own(rows).tolist(), sound, _times(rows)))
        stored = int(last[Field.STORED_PHYSICAL_OFFSET])
        # no copied or renamed file gives a negative offset, and the distance would leave int64
        self._shift = stored - self._base - int(last[Field.POSITION]) if stored >= 0 else 0

    def _behind(self, position: int, stop: Stop, expected: int, found: int) -> tuple[Event, int]:
        """What begins at `position`, where no record is, and where to read on."""
        self._recent.end_run()
        nonzero = self.first_nonzero(position)
        rest = self._size - position
        if nonzero == self._size:
            if self._active:
                return Tail(position, rest, TailContent.ZERO, 0, stop, expected, found), self._size
            return Gap(position, rest, stop, expected, found), self._size
        place, kind = self._next_record(max(position + 1, nonzero - _LEADING_ZEROS))
        if place is None:
            if stop is Stop.BLANK:
                return self._last_filler(position, found)
            if self._active:
                return Tail(position, rest, TailContent.GARBAGE, 0, stop, expected, found), self._size
            return Gap(position, rest, stop, expected, found), self._size
        asked = self._active and (self._tell_stale or not self._keep_stale)
        stale = asked and self._is_stale(kind, stop, position, place)
        if stale and not self._keep_stale:
            if stop is Stop.BLANK:
                return self._last_filler(position, found)
            count = self._count_records(place)
            return Tail(position, rest, TailContent.STALE, count, stop, expected, found), self._size
        reason = Stop.BLANK_LENGTH if stop is Stop.BLANK else stop
        return Gap(position, place - position, reason, expected, found, stale), place

    def _last_filler(self, position: int, length: int) -> tuple[Event, int]:
        """A filler of a wrong length with no live record behind it; that under it for who asks for one."""
        asked = self._past_blanks or self._false_blanks
        size = self._size_under(position) if asked else None
        if size is None:
            return Blank(position, self._size - position, length), self._size
        return Gap(position, size, Stop.BLANK_LENGTH, size, length), position + size

    def _live_behind(self, blank: int, stop: Stop) -> tuple[int | None, int]:
        """Where what makes a filler a gap ends, for who asked for that, and how long it should be."""
        self._recent.end_run()
        whole = self._size - blank
        if not (self._past_blanks or self._false_blanks):
            return None, whole
        behind = self._own_behind(blank)
        if behind is not None and (
            self._past_blanks or not self._is_stale(Stop.ROWS_FULL, stop, blank, behind)
        ):
            return behind, whole
        size = self._size_under(blank) if behind is None else None
        return (None, whole) if size is None else (blank + size, size)

    def _size_under(self, blank: int) -> int | None:
        """Bytes of a record on which the filler's header lies, None for none and for one that is older."""

        def read(at: int, count: int) -> bytes:
            window, origin = self._windows.at(blank + at, count)
            return window[blank + at - origin :][:count].tobytes()

        while True:
            found = under_filler(read, self._size - blank, self._base + blank)
            if not self._windows.had_fault():
                break
        if found is None or (self._recent.newest is not None and found[1] < self._recent.newest):
            return None
        return found[0]

    def _own_behind(self, blank: int) -> int | None:
        """The next whole record at its own place behind a filler."""
        at = self.first_nonzero(blank + END_FILE_MIN_BLANK_LENGTH)
        at = max(blank + END_FILE_MIN_BLANK_LENGTH, at - _LEADING_ZEROS)
        while at < self._size:
            place, kind = self._find(at, 0, any_offset=False)
            if place is None or kind is not Stop.BLANK:
                return place
            at = place + END_FILE_MIN_BLANK_LENGTH
        return None

    def first_nonzero(self, position: int) -> int:
        """Position of the first byte that is not zero; holes of a sparse file are skipped unread."""
        while position < self._size:
            data = self._source.next_data(position)
            if data is None:
                return self._size
            window, origin = self._windows.at(data, 1)
            window = window[: data - origin + self._step]
            at = origin + int(self._kernels.first_nonzero(window, data - origin))
            if self._windows.had_fault():
                continue
            if at < origin + window.size:
                return at
            position = at
        return self._size

    def _next_record(self, position: int) -> tuple[int | None, Stop]:
        """The next whole record: at its own place or as far from it as the last one, else of any place."""
        if self._shift:
            place, kind = self._find(position, self._shift, any_offset=False)
            # a filler ends every search, but records of another shift may lie before it
            if place is not None and kind is not Stop.BLANK:
                return self._own_before(position, place), kind
        place, kind = self._find(position, 0, any_offset=False)
        if place is not None and kind is not Stop.BLANK:
            return place, kind
        at = position
        while True:
            place, kind = self._find(at, 0, any_offset=True)
            if place is None or kind is Stop.BLANK or self._chained(place):
                return place, kind
            at = place + 1

    def _own_before(self, position: int, place: int) -> int:
        """The first record at its own place in front of `place`, else `place`, whose row is in `_scratch`."""
        found = self._scratch.copy()
        own, _ = self._find(position, 0, any_offset=False, limit=place)
        if own is not None and own < place:
            return own
        self._scratch[:] = found
        return place

    def record_from(self, position: int, limit: int) -> int | None:
        """Where the first whole record at its own place begins in [position, limit), in front of a blank."""
        place, kind = self._find(position, 0, any_offset=False, limit=limit)
        return None if kind is Stop.BLANK or place is None or place >= limit else place

    def _find(
        self, position: int, shift: int, *, any_offset: bool, limit: int | None = None
    ) -> tuple[int | None, Stop]:
        """limit: the search may end there; what begins behind it need not be found."""
        limit = self._size if limit is None else limit
        need = END_FILE_MIN_BLANK_LENGTH
        while True:
            data = self._source.next_data(position)
            if data is None:
                return None, Stop.END
            position = max(position, data - _LEADING_ZEROS)
            if position >= limit:
                return None, Stop.END
            window, origin = self._windows.at(position, need)
            window = window[: position - origin + max(min(self._step, limit - position), need)]
            self._kernels.find_record(
                window,
                position - origin,
                origin,
                self._size,
                self._base,
                shift,
                int(any_offset),
                self._scratch,
                self._status,
            )
            if self._windows.had_fault():
                continue
            hit, at, stop, expected, _ = self._status[: Status.FOUND + 1].tolist()
            if hit:
                return at, Stop(stop)
            if stop == Stop.END and origin + window.size >= self._size:
                return None, Stop.END
            # the candidate, or the first bytes that may be one, must lie in the next window
            need = expected if stop == Stop.NEED_MORE else END_FILE_MIN_BLANK_LENGTH
            position = at

    def _chained(self, place: int) -> bool:
        """Does another record with the same shift, a blank, zeros or the file end follow `place`?"""
        shift = int(self._scratch[0, Field.STORED_PHYSICAL_OFFSET]) - self._base - place
        behind = place + int(self._scratch[0, Field.STORE_SIZE])
        if self.first_nonzero(behind) == self._size:
            return True
        # only what stands right behind it counts: a search from every candidate would never end
        records, _, stop, _, _ = self._walk(behind, self._probe)
        if records is None:
            return stop is Stop.BLANK
        return int(records.rows[0, Field.STORED_PHYSICAL_OFFSET]) - self._base - behind == shift

    def _is_stale(self, kind: Stop, stop: Stop, position: int, place: int) -> bool:
        """Is what begins at `place` older than what ends at `position`? A filler is, behind zeros."""
        if kind is Stop.BLANK:
            return stop is Stop.ZERO
        if self._recent.newest is None:
            return False
        front = self._front_times()
        if self._own(self._scratch)[0]:
            # how old records of this place are, none of another place can tell
            front = [one for one in front if one[0]]
        length, behind = place - position, self._behind_times(place)
        if not is_left_over([times for _, times in front], behind, length):
            return False
        # at the start of a file an earlier life has a record, too, and where a filler is of this life
        alike = position == 0 or stop is Stop.BLANK
        return alike or not begins_record(self._head(position), self._base + position, length)

    def _behind_times(self, place: int) -> list[Times]:
        """Of the first records behind a gap, of which the first is in `_scratch`.

        Each is looked for once, however many gaps there are between them.
        """
        ahead = self._times_behind
        while ahead and ahead[0][0] < place:
            ahead.popleft()
        if not ahead or ahead[0][0] != place:
            ahead.clear()
            self._runs_ahead = self._frames(place, BEHIND, window_bytes=_NEAR)
        while len(ahead) < BEHIND and (run := next(self._runs_ahead, None)) is not None:
            positions, own = run.rows[:, Field.POSITION].tolist(), self._own(run.rows).tolist()
            ahead.extend(zip(positions, own, _times(run.rows), strict=True))
        return [times for _, own, times in islice(ahead, BEHIND) if own] or _times(self._scratch)

    def _front_times(self) -> list[tuple[bool, Times]]:
        """`RecentTimes.front`; those in front of where the scan began, or passed by their sums, are read."""
        start, end = self._unseen
        front = self._recent.front
        if len(front) < FRONT and start < end:
            back = LOOK_BACK
            found = self._last_times(max(start, end - back), end)
            while len(found) < FRONT and back < end - start:  # large records
                back *= _LOOK_FURTHER
                found = self._last_times(max(start, end - back), end)
            front, self._unseen = [*found, *front][-FRONT:], (0, 0)
            self._recent.restart(self._recent.newest, front)
        return front

    def _last_times(self, start: int, end: int) -> list[tuple[bool, Times]]:
        """Of the last records at their own places that begin in [start, end), as `RecentTimes` has them."""
        found: list[tuple[bool, Times]] = []
        for run in self._frames(start, BATCH_ROWS, until=end):
            rows = run.rows[run.rows[:, Field.POSITION] < end]
            found = [*found, *((True, one) for one in _times(rows[self._own(rows)][-FRONT:]))][-FRONT:]
            if run.rows[-1, Field.POSITION] + run.rows[-1, Field.STORE_SIZE] >= end:
                break
        return found

    def _own(self, rows: npt.NDArray[np.int64]) -> Mask:
        """Which of the records lie where they say."""
        own: npt.NDArray[np.bool_] = (
            rows[:, Field.STORED_PHYSICAL_OFFSET] == self._base + rows[:, Field.POSITION]
        )
        return own

    def _head(self, position: int) -> bytes:
        while True:
            window, origin = self._windows.at(position, HEAD)
            head = window[position - origin :][:HEAD].tobytes()
            if not self._windows.had_fault():
                return head

    def _count_records(self, position: int) -> int:
        return sum(len(run.rows) for run in self._frames(position, 1024))

    def _frames(
        self, position: int, batch_rows: int, until: int | None = None, window_bytes: int | None = None
    ) -> Iterator[Records]:
        """All records from a position on, whatever their age. until, window_bytes: as of the class."""
        inner = SegmentScan(
            self._source,
            self._base,
            checks=Check.FRAME,
            keep_stale=True,
            start=position,
            batch_rows=batch_rows,
            kernels=self._kernels,
            stop=self._stop,
            until=until,
            window_bytes=window_bytes,
        )
        return (event for event in inner if isinstance(event, Records))


def _times(rows: npt.NDArray[np.int64]) -> list[Times]:
    return [Times(*one) for one in rows[:, [Field.STORE_TIMESTAMP, Field.BORN_TIMESTAMP]].tolist()]
