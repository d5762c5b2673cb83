"""Timers of a store whose wheel was lost: with what `recover` plans a real broker delivers all of them."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from fixtures.timers import timers_moved
from tests.helpers import rmq
from tests.interop.broker import Broker
from tests.interop.conftest import require

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

RELEASE = "5.3.3"
SETTINGS = {"mappedFileSizeTimerLog": 520, "mappedFileSizeConsumeQueue": 6000, "timerWheelEnable": True}
"""nine timers in a file of the timer log"""
TIMERS, DELAY_SECONDS, SEVERAL = 40, 150, 60


def delivered(root: Path) -> int:
    """How many timers have an entry in the queues of their topic."""
    found = (path.read_bytes() for path in (root / "consumequeue").glob("Timed/*/*"))
    return sum(any(data[at : at + 20]) for data in found for at in range(0, len(data), 20))


def lost(root: Path, asked: tuple[object, ...]) -> int:
    """How many timers are never delivered, by `doctor`."""
    found = json.loads(rmq("doctor", root, "--json", *asked).stdout)["consequences"]
    return sum(one["count"] for one in found if one["code"] == "DR-TIMERS-LOST")


@pytest.mark.full  # a broker takes a quarter of a minute to start, and timers minutes
@pytest.mark.parametrize("damage", ["cut", "missing", "slots"])
def test_timers_of_a_wheel_that_is_lost(damage: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Eight timers each are due at five times; those of the last ones are linked in the end of the log."""
    require(request.config, RELEASE, "broker")
    root, began = tmp_path / "store", time.monotonic()
    for one in ("first", "as-it-was", "repaired"):
        (tmp_path / one).mkdir()
    with Broker(RELEASE, root, tmp_path / "first", **SETTINGS) as broker:
        broker.create_topic("Timed", "")
        for number in range(TIMERS):
            due = DELAY_SECONDS + number // 8 * 4
            broker.send("Timed", b"%d" % number, TIMER_DELAY_MS=due * 1000)
        time.sleep(5)
        broker.stop()
    assert len(list((root / "timerlog").iterdir())) > 3
    assert not delivered(root)
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    asked = ("--as-version", RELEASE, "--store-config", conf)
    assert lost(root, asked) == 0
    wheel = root / "timerwheel"
    if damage == "missing":
        wheel.unlink()
    else:
        wheel.write_bytes(wheel.read_bytes()[:1000] if damage == "cut" else bytes(wheel.stat().st_size))
    out = tmp_path / "out"
    done = rmq("recover", root, "--output", out, "--apply", *asked)
    assert done.exit_code == 0, done.stderr
    assert lost(out, asked) == 0
    end = DELAY_SECONDS + SEVERAL + began
    if damage != "cut":
        count = lost(root, asked)
        with Broker(RELEASE, root, tmp_path / "as-it-was", **SETTINGS):
            time.sleep(max(end - time.monotonic(), 0))
        assert 0 < count == TIMERS - delivered(root)
    with Broker(RELEASE, out, tmp_path / "repaired", **SETTINGS):
        time.sleep(max(end - time.monotonic(), 15))
    assert delivered(out) == TIMERS


DAY = 86_400_000


@pytest.mark.full
@pytest.mark.parametrize(
    ("damage", "stopped_before", "sound"),
    [
        ("gap", 150_000, False),
        ("log", 150_000, False),
        ("end", 150_000, False),
        ("none", 6 * DAY, True),
        ("none", 8 * DAY, False),
    ],
)
def test_timers_that_wait_are_delivered_once(
    damage: str, stopped_before: int, sound: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Of 40 timers every other one is delivered before the broker stops, and the damage done.

    sound: a broker delivers each once without a repair.
    """
    require(request.config, RELEASE, "broker")
    root = tmp_path / "store"
    for one in ("first", "as-it-was", "repaired"):
        (tmp_path / one).mkdir()
    with Broker(RELEASE, root, tmp_path / "first", **SETTINGS) as broker:
        broker.create_topic("Timed", "")
        for number in range(TIMERS):
            broker.send("Timed", b"%d" % number, TIMER_DELAY_MS=(100 if number % 2 else 3) * 1000)
        time.sleep(10)
        broker.stop()
    assert delivered(root) == TIMERS // 2
    timers_moved(root, stopped_before=stopped_before)
    files = sorted((root / "timerlog").iterdir())
    if damage == "gap":
        files[2].unlink()
    elif damage == "log":
        shutil.rmtree(root / "timerlog")
    elif damage == "end":
        with files[3].open("r+b") as file:
            file.write(bytes(104))
    out = tmp_path / "out"
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    asked = ("--as-version", RELEASE, "--store-config", conf)
    assert (rmq("doctor", root, *asked).exit_code == 0) == sound
    done = rmq("recover", root, "--output", out, "--apply", *asked)
    if not sound:
        assert done.exit_code == 0, done.stdout
        assert rmq("doctor", out, *asked).exit_code == 0
        with Broker(RELEASE, out, tmp_path / "repaired", **SETTINGS):
            time.sleep(25)
        assert delivered(out) == TIMERS
    with Broker(RELEASE, root, tmp_path / "as-it-was", **SETTINGS):
        time.sleep(25)
    assert (delivered(root) == TIMERS) == sound
