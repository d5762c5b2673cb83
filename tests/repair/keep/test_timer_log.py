"""A timer log that is made of the messages of its topic: what waits, in chains, and nothing else."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import open_golden
from fixtures.timers import timers_moved
from formats.commitlog import BLANK_MAGIC_CODE
from formats.timer import TIMER_DELETES, TIMER_ROLLED, TIMER_UNIT_SIZE, TimerUnit, parse_timer_check
from rmqtool.recovery.simulation import simulate
from rmqtool.recovery.timers import TIMER_HARM
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from formats.primitives import Container

WAITING = [21101, 21565, 22029, 22493, 22957, 23404, 23854, 24300, 24757, 25221, 25685]
"""messages to which slots lead whose time has not come when the broker stops; the last one deletes another"""
DAY = 86_400_000


def units(root: Path) -> dict[int, Container]:
    """Every unit of the timer log by its place."""
    found = {}
    for path in sorted((root / "timerlog").iterdir()):
        raw = path.read_bytes()
        for at in range(0, len(raw) - TIMER_UNIT_SIZE + 1, TIMER_UNIT_SIZE):
            one = TimerUnit.parse(raw[at : at + TIMER_UNIT_SIZE])
            if one.magic == BLANK_MAGIC_CODE:
                break
            if one.size == TIMER_UNIT_SIZE:
                found[int(path.name) + at] = one
    return found


def recovered(opened: Golden, place: Path) -> Path:
    out = place / "out"
    done = rmq("recover", opened.path, "--output", out, "--apply", "--store-config", opened.config_path)
    assert done.exit_code == 0, done.stdout
    return out


def cut(root: Path) -> None:
    with (root / f"timerlog/{2080:020d}").open("r+b") as file:
        file.seek(312)
        file.write(bytes(104))


def master_behind(root: Path) -> None:
    with (root / "config/timercheck").open("r+b") as file:
        file.seek(24)
        file.write((40).to_bytes(8, "big"))


HARM: dict[str, Callable[[Path], object]] = {
    "a file": lambda root: (root / f"timerlog/{2080:020d}").unlink(),
    "the log": lambda root: shutil.rmtree(root / "timerlog"),
    "the wheel, and an entry": lambda root: ((root / "timerwheel").unlink(), cut(root)),
    "the master's offset": master_behind,
}


@pytest.mark.share
@pytest.mark.parametrize("harm", HARM)
def test_what_waits_is_in_the_new_log(harm: str, tmp_path: Path) -> None:
    opened = open_golden("b533-timer", tmp_path)
    moved = timers_moved(opened.path)
    before = parse_timer_check((opened.path / "config/timercheck").read_bytes())
    HARM[harm](opened.path)
    if harm != "the master's offset":
        said = rmq("doctor", opened.path, "--store-config", opened.config_path)
        assert "rmqtool recover" in said.stdout + said.stderr
    out = recovered(opened, tmp_path)
    made = units(out)
    assert [one.physical_offset for one in made.values()] == WAITING
    assert [bool(one.magic & TIMER_DELETES) for one in made.values()] == [False] * 10 + [True]
    assert not any(one.magic & TIMER_ROLLED for one in made.values())
    heads: dict[int, int] = {}
    for at, one in made.items():
        due = one.write_time + one.delay
        assert one.previous == heads.get(due, -1)
        heads[due] = at
    assert min(heads) == 1_795_254_107_000 + moved
    after = parse_timer_check((out / "config/timercheck").read_bytes())
    assert after.last_read_time == before.last_read_time
    assert (after.last_timer_queue_offset, after.master_timer_queue_offset) == (52, 52)
    assert not (out / "timerwheel").exists()
    codes = {one.code for one in simulate(Store.open(out), "5.3.3").consequences}
    assert not codes & set(TIMER_HARM)


@pytest.mark.parametrize("gone", [(), ("consumequeue",)], ids=["queues", "no queues"])
def test_timers_that_a_start_would_pass_over_are_due_today(gone: tuple[str, ...], tmp_path: Path) -> None:
    opened = open_golden("b533-timer", tmp_path)
    timers_moved(opened.path, stopped_before=9 * DAY)
    for one in gone:  # the plan that makes the queues makes the log, too, and not the next one (800218)
        shutil.rmtree(opened.path / one)
    out = recovered(opened, tmp_path)
    made = units(out)
    assert [one.physical_offset for one in made.values()] == WAITING
    assert len({one.write_time + one.delay for one in made.values()}) == 1
    assert (made[0].write_time + made[0].delay) % DAY == 0
    found = simulate(Store.open(out), "5.3.3")
    assert not {one.code for one in found.consequences} & set(TIMER_HARM)


@pytest.mark.share
@pytest.mark.parametrize("read_time", [4_102_444_800_000, 0, -1, -(1 << 63)])
def test_nothing_is_made_where_nobody_knows_what_was_delivered(read_time: int, tmp_path: Path) -> None:
    opened = open_golden("b533-timer", tmp_path)
    timers_moved(opened.path)
    (opened.path / f"timerlog/{2080:020d}").unlink()
    with (opened.path / "config/timercheck").open("r+b") as file:
        file.write(read_time.to_bytes(8, "big", signed=True))
    done = rmq("recover", opened.path, "--json", "--store-config", opened.config_path)
    assert "timer-log" not in done.stdout


def test_undo_brings_the_old_log_back(tmp_path: Path) -> None:
    opened = open_golden("b533-timer", tmp_path)
    timers_moved(opened.path)
    (opened.path / f"timerlog/{2080:020d}").unlink()
    before = units(opened.path)
    words = ("--in-place", "--backup", tmp_path / "backup", "--store-config", opened.config_path)
    assert rmq("recover", opened.path, *words, "--apply").exit_code == 0
    assert units(opened.path) != before
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert units(opened.path) == before
    assert (opened.path / "timerwheel").exists()


def test_what_a_start_is_refused_for_does_not_hide_it(tmp_path: Path) -> None:
    """740396: the file that a broker refuses was to go, and the second plan made the timer log."""
    opened = open_golden("b533-timer", tmp_path)
    timers_moved(opened.path)
    shutil.rmtree(opened.path / "timerlog")
    queue = next((opened.path / "consumequeue/TopicTimer").iterdir())
    (queue / "queue#1").write_bytes(b"not of this store")
    out = recovered(opened, tmp_path)
    again = rmq("recover", out, "--store-config", opened.config_path)
    assert "Nothing to change" in again.stdout
