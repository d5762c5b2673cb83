"""Timers after a start: lost, delivered again or passed by, by what became of their files."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from formats.timer import TIMER_CHECK_SIZE, TimerCheck, parse_timer_check
from rmqtool.check.config_files import check_config
from rmqtool.check.verify import Verification
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import filled, patched, start, timer_store, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

MINUTE, DAY = 60_000, 86_400_000


@shows("DR-TIMERS-PASSED")
def test_a_broker_was_down_for_longer_than_its_timer_wheel_looks_back(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """A broker of 5.3.3 delivered 40 of 40 timers 6 days after its stop, and none 8 days after it."""
    for days, passed in ((6, []), (8, [11])):
        root = tmp_path / str(days)
        timer_store(golden, root, stopped_before=days * DAY)
        found = simulate(Store.open(root), "5.3.3")
        assert [one.facts["count"] for one in of(found, "DR-TIMERS-PASSED")] == passed
        assert found.verdict is (Verdict.UNSAFE if passed else Verdict.SAFE)


def test_a_timer_check_without_the_time_that_was_read_changes_nothing_of_that(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    timer_store(golden, tmp_path / "store", stopped_before=9 * DAY)
    check = tmp_path / "store/config/timercheck"
    data = check.read_bytes()
    fields = {**parse_timer_check(data), "last_read_time": 0}
    check.write_bytes(TimerCheck.build(fields) + data[TIMER_CHECK_SIZE:])
    found = simulate(Store.open(tmp_path / "store"), "5.3.3")
    assert of(found, "DR-TIMERS-PASSED")
    assert found.verdict is Verdict.UNSAFE


@shows("DR-TIMERS-LOST", "DR-TIMERS-AGAIN", "DR-UNCHECKED-TIMERS")
def test_timer_files_that_are_gone(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#recover`: only the last files of the timer log are read for a new wheel."""
    root = tmp_path / "whole"
    timer_store(golden, root)
    assert simulate(Store.open(root), "5.3.3").verdict is Verdict.SAFE
    wanted = {
        "timerlog": "DR-TIMERS-LOST",
        "timerwheel": "DR-TIMERS-LOST",
        "config/timercheck": "DR-TIMERS-AGAIN",
    }
    for name, code in wanted.items():
        root = tmp_path / code / name.rpartition("/")[2]
        timer_store(golden, root, undelivered=MINUTE)
        place = root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        found = simulate(Store.open(root), "5.3.3")
        assert {one for one in codes(found) if one.startswith("DR-TIMERS")} == {code}
        assert found.verdict is Verdict.UNSAFE
        assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE


@shows("DR-TIMERS-AGAIN")
def test_nothing_of_the_timer_log_came_along(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """The log of messages still holds delivered timers, and a new `config/timercheck` counts none of them."""
    root = tmp_path / "store"
    timer_store(golden, root)
    for name in ("timerlog", "timerwheel", "config/timercheck"):
        place = root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    found = simulate(Store.open(root), "5.3.3")
    assert {one for one in codes(found) if one.startswith("DR-TIMERS")} == {"DR-TIMERS-AGAIN"}
    assert found.verdict is Verdict.UNSAFE


@pytest.mark.share
@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (0, []),
        (520, []),
        (2080, [("DR-TIMERS-LOST", 4)]),
        (2600, [("DR-TIMERS-LOST", 1), ("DR-TIMERS-AGAIN", 7)]),
    ],
)
def test_a_file_of_the_timer_log_is_missing(
    base: int, wanted: list[tuple[str, int]], golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Ten timers wait from 2340 to 2860 when the broker stops; those of the first files are delivered.

    The wheel leads to 2912, too, where a broker of 5.3.3 puts a timer that leads to itself, and goes round.
    """
    root = tmp_path / "store"
    timer_store(golden, root)
    (root / f"timerlog/{base:020d}").unlink()
    found = simulate(Store.open(root), "5.3.3")
    harm = [one for one in found.consequences if one.code.startswith("DR-TIMERS")]
    named = (f"timerlog/{base:020d}",)
    assert [(one.code, one.facts["count"], one.paths) for one in harm] == [(*one, named) for one in wanted]
    assert found.verdict is (Verdict.UNSAFE if wanted else Verdict.SAFE)


@shows("DR-TIMERS-LOST")
def test_the_first_file_of_the_timer_log_has_timers_that_wait(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Their messages are there, so that it has not expired."""
    root = tmp_path / "store"
    delta = timer_store(golden, root)
    (root / f"timerlog/{0:020d}").unlink()
    check = root / "config/timercheck"
    patched(check, 0, (1_795_253_527_000 + delta).to_bytes(8, "big"))
    (one,) = of(simulate(Store.open(root), "5.3.3"), "DR-TIMERS-LOST")
    assert (one.paths, one.facts["count"]) == ((f"timerlog/{0:020d}",), 5)


@shows("DR-TIMERS-AGAIN")
def test_what_is_no_timer_ends_the_timer_log(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#recoverAndRevise` cuts the log there, and reads the rest from the topic again."""
    root = tmp_path / "store"
    timer_store(golden, root)
    patched(root / f"timerlog/{2080:020d}", 104, bytes(52))
    found = simulate(Store.open(root), "5.3.3")
    (one,) = of(found, "DR-TIMERS-AGAIN")
    assert (one.paths, one.facts["count"]) == ((f"timerlog/{2080:020d}",), 15)
    assert found.verdict is Verdict.UNSAFE


@pytest.mark.share
@pytest.mark.parametrize(
    ("position", "value", "wanted"),
    [
        (0, 4_102_444_800_000, {"DR-TIMERS-LOST": 52}),
        (24, 40, {"DR-TIMERS-AGAIN": 12}),
        (24, 0, {"DR-TIMERS-AGAIN": 52}),
        (24, 99, {}),
    ],
    ids=["time to come", "master behind", "master at none", "master ahead"],
)
def test_a_timer_check_that_no_broker_writes(
    position: int, value: int, wanted: dict[str, int], golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """A broker of 5.3.3 delivered none of 40 timers with such a time, and each twice with such an offset."""
    root = tmp_path / "store"
    timer_store(golden, root)
    patched(root / "config/timercheck", position, value.to_bytes(8, "big"))
    found = simulate(Store.open(root), "5.3.3")
    harm = [one for one in found.consequences if one.code in {"DR-TIMERS-LOST", "DR-TIMERS-AGAIN"}]
    assert {one.code: one.facts["count"] for one in harm} == wanted
    store = Store.open(root)
    run = Verification(store, ReadOptions.of(store))
    said = {"CP-TIMERS-AHEAD": "DR-TIMERS-LOST", "CP-TIMERS-BEHIND": "DR-TIMERS-AGAIN"}
    assert {said[one.code]: one.expected for one in run.findings() if one.code in said} == wanted
    assert found.verdict is (Verdict.UNSAFE if wanted else Verdict.SAFE)


@shows("DR-TIMERS-AGAIN")
def test_a_timer_check_that_is_cut(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root = tmp_path / "store"
    timer_store(golden, root)
    os.truncate(root / "config/timercheck", 24)
    (one,) = of(simulate(Store.open(root), "5.3.3"), "DR-TIMERS-AGAIN")
    assert one.paths == ("config/timercheck",)


def test_counts_of_timers_that_cannot_be_parsed(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#load` fails with `TimerMetrics#load`; a broker of 5.3.3 ends with -3."""
    root = tmp_path / "store"
    timer_store(golden, root)
    counts = root / "config/timermetrics"
    counts.write_bytes(b'{"a":[1,')
    assert simulate(Store.open(root), "5.3.3").verdict is Verdict.SAFE
    counts.with_name("timermetrics.bak").write_bytes(b'{"a":[1,')
    found = simulate(Store.open(root), "5.3.3")
    assert found.refusal is not None
    assert (found.refusal.code, found.refusal.path) == ("config-unparsable", "config/timermetrics")
    assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE
    without = config_of({"timerWheelEnable": "false"})
    assert simulate(Store.open(root, config=without), "5.3.3").verdict is Verdict.SAFE
    assert [one.code for one in check_config(Store.open(root))] == ["CFG-REFUSED"]


def test_a_timer_log_of_another_length(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#load` fails by `MappedFileQueue#doLoad`, and with it the broker."""
    root = tmp_path / "store"
    timer_store(golden, root)
    with (root / "timerlog" / f"{520:020d}").open("r+b") as file:
        file.truncate(300)
    found = simulate(Store.open(root), "5.3.3")
    assert found.refusal is not None
    assert (found.refusal.code, found.refusal.path) == ("file-length", f"timerlog/{520:020d}")


@shows("DR-REFUSE-TIMER-WHEEL")
def test_a_timer_wheel_of_another_length(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "timerwheel").write_bytes(bytes(64))
    assert "DR-REFUSE-TIMER-WHEEL" in codes(start(root))
    assert start(root).starts is False
    assert start(root, timerWheelEnable="false").starts is True
    assert start(root, "4.9.8").starts is True
