"""Units of a new timer log as columns, of the messages of the timer topic (`TimerMessageStore#doEnqueue`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from formats.commitlog import BLANK_MAGIC_CODE
from formats.primitives import dtype_of
from formats.properties import REAL_TOPIC, TIMER_DEL_UNIQKEY, TIMER_OUT_MS
from formats.timer import (
    ROLL_TIMES,
    TIMER_BLANK,
    TIMER_DELETES,
    TIMER_ROLLED,
    TIMER_SET,
    TIMER_UNIT_SIZE,
    WHEEL_SPAN,
    TimerBlank,
    TimerUnit,
)
from rmqtool.broker.timer_check import TIMERS
from rmqtool.query.key_columns import hash_columns
from rmqtool.query.views.topic_records import numbers_of, property_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Units = npt.NDArray[np.void]

_UNIT = dtype_of(TimerUnit)
_NUMBERS = (
    "physical_offset", "store_size", "queue_offset", "store_timestamp", "born_timestamp", "body_crc",
)  # fmt: skip
COLUMNS = (*_NUMBERS, "queue_id", "uniq_key", "properties")
"""of records, that units are made of"""
_TEXTS = ("uniq_key", "deletes", "topic")
_MIXED = {
    "due": np.int64(1),
    "born_timestamp": np.int64(0x1E3779B97F4A7C15),
    "body_crc": np.int64(0x2545F4914F6CDD1D),
}
"""what parts messages best, with factors that keep sums apart"""
_MESSAGE = (*_TEXTS, *_MIXED)
"""what is the same whenever a timer is put into its topic again, for being far off"""
_OF_UNITS = {"physical_offset": "physical_offset", "record_size": "store_size", "topic_hash": "topic_hash"}
"""fields of a unit that are a column as it is"""
_LONGEST_DELAY = 1 << 30
"""ms, in an int"""
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Window:
    """read_time: up to which timers were delivered. today: its begin, for plans of a day to be the same.

    Both above 0, as the precision is. What was due before is delivered as if it were due then: a start passes
    over what is older than a week.
    """

    read_time: int
    precision: int
    today: int

    def holds(self, due: Ints) -> Flags:
        """Which times have not come: of their slots, which may begin in front of all that an int64 holds."""
        found: Flags = due // self.precision >= -(-self.read_time // self.precision)
        return found

    def slots(self, due: Ints) -> tuple[Ints, Flags]:
        """Times at which what waits is looked at, and which of them are not yet those of the timers."""
        step = self.precision
        slots = np.maximum(due // step * step, self.today // step * step)
        last = max(self.today, self.read_time) // step * step + WHEEL_SPAN * step
        return np.minimum(slots, min(last, _MOST)), slots > min(last, _MOST)

    def written(self, stored: Ints, due: Ints) -> Ints:
        """The clock of the wheel when they were put there: no further off than the delay can say."""
        first = due - _LONGEST_DELAY
        at: Ints = np.maximum(np.clip(stored, first, due) // self.precision * self.precision, first)
        return at


def timer_units(batches: Iterable[pa.RecordBatch], taken: int, window: Window) -> Units:
    """What the log gets: what waits, and the last one that was taken, behind which brokers go on.

    batches: `COLUMNS` of the records of the topic, in their order. taken: up to which queue offset. Those
    whose time has come are no longer looked at, and not kept: one that was put there again is due as it was.
    """
    parts = [part for one in batches for part in _kept(one, taken, window)]
    if not parts:
        return np.zeros(0, _UNIT)
    table = pa.Table.from_batches(parts)
    order = np.argsort(table["queue_offset"].to_numpy(), kind="stable")
    wait = window.holds(table["due"].to_numpy()) & ~_is_put_again(table)
    rows = order[wait[order]]
    due, rolls = window.slots(table["due"].to_numpy()[rows])
    if not wait[order[-1]]:
        rows, due = np.append(rows, order[-1]), np.append(due, window.read_time - window.precision)
        rolls = np.append(rolls, False)
    return _build(table, rows, due, rolls, window)


def _kept(batch: pa.RecordBatch, taken: int, window: Window) -> Iterator[pa.RecordBatch]:
    """Timers of a batch that may wait, and the last one that was taken."""
    due = numbers_of(property_of(batch, TIMER_OUT_MS), 64)
    slots = batch["queue_offset"].to_numpy()
    known = (batch["queue_id"].to_numpy() == TIMERS[1]) & (slots < taken) & due.is_valid().to_numpy(False)
    rows = np.flatnonzero(known)
    if not len(rows):
        return
    kept = known & window.holds(due.fill_null(0).to_numpy())
    kept[rows[np.flatnonzero(slots[rows] == slots[rows].max())[-1]]] = True
    some = batch.filter(pa.array(kept))
    topic, deletes = property_of(some, REAL_TOPIC), property_of(some, TIMER_DEL_UNIQKEY)
    columns = {
        **{name: some[name] for name in _NUMBERS},
        "due": due.filter(pa.array(kept)),
        "rolled": numbers_of(property_of(some, ROLL_TIMES)).fill_null(0),
        "topic_hash": _hashes(topic),
        "is_delete": deletes.is_valid(),
        "uniq_key": some["uniq_key"],
        "deletes": deletes,
        "topic": topic,
    }
    # there may be more of them than offsets of 32 bits lead to
    columns |= {name: columns[name].cast(pa.large_string()) for name in _TEXTS}
    yield pa.record_batch(columns)


def _hashes(topics: pa.StringArray) -> pa.Int32Array:
    """`String#hashCode`, 0 without a topic."""
    coded = topics.fill_null("").dictionary_encode()
    hashes = hash_columns(coded.dictionary)[1].astype(np.uint32).view(np.int32)
    return pa.array(hashes).take(coded.indices)


def _is_put_again(table: pa.Table) -> Flags:
    """Which timers have another one beside them that is the same, but was rolled once more."""
    found = np.zeros(table.num_rows, np.bool_)
    rows = _may_be_the_same(table)
    some = table.take(rows)
    message = [_codes(some[name]) if name in _TEXTS else some[name].to_numpy() for name in _MESSAGE]
    rolled = some["rolled"].to_numpy()
    order = np.lexsort((rolled, *message))
    if len(order):
        changes: Flags = np.any([column[order[1:]] != column[order[:-1]] for column in message], axis=0)
        rolled = rolled[order]
        starts = np.flatnonzero(np.append(True, changes | (rolled[1:] != rolled[:-1])))
        follows = ~changes[starts[1:] - 1] & (rolled[starts[1:]] == rolled[starts[:-1]] + 1)
        found[rows[order]] = np.repeat(np.append(follows, False), np.diff(starts, append=len(order)))
    return found


def _may_be_the_same(table: pa.Table) -> Ints:
    """Rows with a partner by their numbers: few, so that the texts of few are compared."""
    mixed = sum(table[name].to_numpy() * factor for name, factor in _MIXED.items())
    _, places, counts = np.unique(mixed, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[places] > 1)


def _codes(texts: pa.ChunkedArray) -> Ints:
    """A number for each distinct text, and for none."""
    codes: Ints = texts.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    return codes


def _build(table: pa.Table, rows: Ints, due: Ints, rolls: Flags, window: Window) -> Units:
    data = np.zeros(len(rows), _UNIT)
    written = window.written(table["store_timestamp"].to_numpy()[rows], due)
    data["size"] = TIMER_UNIT_SIZE
    data["magic"] = TIMER_SET + TIMER_ROLLED * rolls + TIMER_DELETES * table["is_delete"].to_numpy()[rows]
    data["write_time"], data["delay"] = written, due - written
    for name, column in _OF_UNITS.items():
        data[name] = table[column].to_numpy()[rows]
    return data


def timer_files(units: Units, size: int) -> list[bytes] | None:
    """As a broker appends them (`TimerLog#append`); None where a file has no room for any.

    `previous` is set in the units.
    """
    each = (size - TIMER_BLANK) // TIMER_UNIT_SIZE
    if each < 1:
        return None
    numbers = np.arange(len(units))
    places = numbers // each * size + numbers % each * TIMER_UNIT_SIZE
    due = units["write_time"] + units["delay"]
    order = np.argsort(due, kind="stable")
    units["previous"] = -1
    first, then = order[:-1], order[1:]
    same = due[first] == due[then]
    units["previous"][then[same]] = places[first[same]]
    files = [units[at : at + each].tobytes() for at in range(0, len(units), each)]
    for number in range(len(files) - 1):
        rest = {"size": size - len(files[number]), "previous": 0, "magic": BLANK_MAGIC_CODE}
        files[number] += TimerBlank.build(rest)
    return files
