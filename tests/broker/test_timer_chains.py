"""Timers that are reached after a start, by a model of what `TimerMessageStore` does entry by entry."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.commitlog import BLANK_MAGIC_CODE
from formats.primitives import sizeof
from formats.timer import TIMER_UNIT_SIZE, WHEEL_SIZE, TimerBlank, TimerUnit, WheelSlot
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.broker.timer_chains import TimerFiles
from rmqtool.scan.options import ReadOptions
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable

A_FILE = 4
SIZE = A_FILE * TIMER_UNIT_SIZE + 16
"""four timers and a blank"""
NOTHING = 0, 0
"""of zeros in the place of a timer, as they are read for slot and previous position"""
PRECISION, READ = 1000, 50
"""ms; the slot up to which timers were delivered"""


@dataclass
class Model:
    """A timer log and its wheel as a broker has written them: positions by slot, entries by position."""

    entries: dict[int, tuple[int, int]] = field(default_factory=dict)
    """slot and previous position"""
    slots: dict[int, int] = field(default_factory=dict)
    """as they were before the damage"""
    wheel: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """first, last, count"""
    end: int = 0
    gone: set[int] = field(default_factory=set)
    """bases of missing files"""
    no_wheel: bool = False
    stale: bool = False
    """a slot does not lead to its last timer"""
    misled: bool = False
    """a timer leads to one of another time, which comes too early"""

    def put(self, slot: int) -> None:
        """`#doEnqueue`, `TimerLog#append`."""
        if SIZE - self.end % SIZE < TIMER_UNIT_SIZE + 16:
            self.end += SIZE - self.end % SIZE
        first, last, count = self.wheel.get(slot, (self.end, -1, 0))
        self.entries[self.end] = slot, last
        self.slots[self.end] = slot
        self.wheel[slot] = first, self.end, count + 1
        self.end += TIMER_UNIT_SIZE

    def reached(self, flushed: int) -> set[int] | None:
        """Positions of timers that wait and are found from their slots, after `#recover`.

        None where `#dequeue` goes round for ever.
        """
        there = [base for base in range(0, self.end, SIZE) if base not in self.gone]
        scanned = max((base for base in there if base <= max(flushed - SIZE, 0)), default=there[0])
        heads = {} if self.no_wheel else {slot: last for slot, (_, last, _) in self.wheel.items()}
        for base in there:
            if base >= scanned:
                for at in range(base, min(base + SIZE, self.end), TIMER_UNIT_SIZE):
                    if at in self.entries:
                        heads[self.entries[at][0]] = at
        found = set()
        for slot, head in heads.items():
            at, chain = head, dict[int, int]()
            while slot >= READ and at not in chain and at // SIZE * SIZE in there:
                chain[at], at = self.entries.get(at, (-1, 0))
            if at in chain:
                return None
            found |= {at for at, of in chain.items() if of == slot}
        return found

    def files(self, root: Path, flushed: int) -> TimerFiles:
        """Written below a directory."""
        log = MappedFiles(SIZE, "timerlog")
        (root / "timerlog").mkdir()
        for base in range(0, self.end, SIZE):
            if base in self.gone:
                continue
            data = bytearray(SIZE)
            for at in range(base, base + SIZE, TIMER_UNIT_SIZE):
                if self.entries.get(at, NOTHING) != NOTHING:
                    data[at - base : at - base + TIMER_UNIT_SIZE] = unit(*self.entries[at])
            if self.end - base >= SIZE:
                data[-16:] = TimerBlank.build({"size": 16, "previous": 0, "magic": BLANK_MAGIC_CODE})
            (root / log.path_of(base)).write_bytes(data)
        if not self.no_wheel:
            with (root / "timerwheel").open("wb") as file:
                file.truncate(WHEEL_SIZE)
                for slot, (first, last, count) in self.wheel.items():
                    file.seek(slot * sizeof(WheelSlot))
                    fields = {"time": slot, "first": first, "last": last, "count": count, "magic": 0}
                    file.write(WheelSlot.build(fields))
        store = Store.open(root)
        for one in sorted(store.of_kind(FileKind.TIMERLOG), key=lambda one: one.path):
            log.files.append(MappedFile(int(one.path[-20:]), SIZE, one.path, one))
        begin = 0 if 0 in self.gone else log.min_offset
        return TimerFiles(log, store.file("timerwheel"), flushed, begin, PRECISION, ReadOptions())


def unit(slot: int, previous: int) -> bytes:
    """A timer of a slot, with fields that are not looked at."""
    fields = dict.fromkeys(("physical_offset", "record_size", "topic_hash", "reserved"), 0)
    fields |= {"size": TIMER_UNIT_SIZE, "previous": previous, "magic": 1}
    return TimerUnit.build(fields | {"write_time": (slot - 3) * PRECISION, "delay": 3 * PRECISION})


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Model, set[int], int]:
    """A model with damage, its timers that wait before that, and up to where the log was flushed."""
    model = Model()
    for slot in draw(st.lists(st.integers(READ - 3, READ + 5), min_size=1, max_size=40)):
        model.put(slot)
    waiting = {at for at, (slot, _) in model.entries.items() if slot >= READ}
    last = max(model.entries) // SIZE * SIZE
    for kind in draw(st.lists(st.sampled_from(DAMAGE), max_size=2)):
        if kind == "no wheel":
            model.no_wheel = True
        elif kind == "file" and last:
            model.gone.add(draw(st.integers(0, last // SIZE - 1)) * SIZE)
        elif kind in {"entry", "previous"}:
            # in front of the last two files: a start ends the log at what is no entry
            early = [at for at in model.entries if at < last - 2 * SIZE]
            if early:
                at = draw(st.sampled_from(early))
                other = draw(st.sampled_from([-1, *model.entries]))
                model.entries[at] = (model.entries[at][0], other) if kind == "previous" else NOTHING
                model.misled |= kind == "previous"
        elif kind in {"slot", "stale slot"} and model.wheel:
            slot = draw(st.sampled_from(sorted(model.wheel)))
            first, head, count = model.wheel.pop(slot)
            model.stale = True
            older = [at for at, (of, _) in model.entries.items() if of == slot and at < head]
            if kind == "stale slot" and older:
                model.wheel[slot] = first, older[-1], count
    return model, waiting, model.end


DAMAGE = ("no wheel", "file", "entry", "previous", "slot", "stale slot")


@given(damaged())
def test_what_a_broker_does_not_reach_is_lost(made: tuple[Model, set[int], int]) -> None:
    model, waiting, flushed = made
    reached = model.reached(flushed)
    with tempfile.TemporaryDirectory() as place:
        found = model.files(Path(place), flushed).unreached(READ * PRECISION)
    if reached is None:
        assert found
        return
    lost = waiting - reached
    whole = {at: (of, model.entries[at][1]) for at, of in model.slots.items()}
    traced = not model.gone or not model.stale
    if traced or model.no_wheel:
        assert found.total() >= len(lost)
    if traced and not model.misled and not (model.no_wheel and (model.gone or model.entries != whole)):
        assert bool(found) == bool(lost)


EARLY = [51, 52, 51, 52, 51]
"""timers of the first two files, in front of those that a start reads"""


def a_slot_less(model: Model) -> None:
    del model.wheel[52]


def an_older_head(model: Model) -> None:
    first, _, count = model.wheel[51]
    model.wheel[51] = first, 2 * TIMER_UNIT_SIZE, count


def zeros(model: Model) -> None:
    model.entries[2 * TIMER_UNIT_SIZE] = NOTHING


def a_wheel_ahead(model: Model) -> None:
    """It was copied behind the log. A broker puts the timer there once more, which then leads to itself."""
    model.wheel[60] = model.end, model.end, 1


HARM: dict[str, tuple[Callable[[Model], object], dict[str, int]]] = {
    "nothing": (lambda model: None, {}),
    "no wheel": (lambda model: setattr(model, "no_wheel", True), {"timerwheel": 5}),
    "a slot less": (a_slot_less, {"timerwheel": 2}),
    "an older head": (an_older_head, {"timerwheel": 3}),
    "zeros": (zeros, {f"timerlog/{0:020d}": 2}),
    "a wheel ahead": (a_wheel_ahead, {f"timerlog/{4 * SIZE:020d}": 1}),
    "a file": (lambda model: model.gone.add(0), {f"timerlog/{0:020d}": 4}),
}


@pytest.mark.parametrize("harm", HARM)
def test_timers_that_nothing_leads_to(harm: str, tmp_path: Path) -> None:
    model = Model()
    for slot in [*EARLY, *[47] * 12]:
        model.put(slot)
    damage, wanted = HARM[harm]
    damage(model)
    assert model.files(tmp_path, model.end).unreached(READ * PRECISION) == wanted
