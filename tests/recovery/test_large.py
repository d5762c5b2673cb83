"""Large stores: what is read follows from what the start itself reads, not from the size of the store."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import simulate
from rmqtool.store.bytes import WINDOW_BYTES, PreadSource
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.bench.measure import run_alone
from tests.helpers import rmq
from tests.recovery.large import Large

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL = Large(segments=40, segment_size=32 << 20, queues=80, rounds=12, queue_file=20_000)
RELEASES = ["4.9.8", "5.3.1", "5.3.3"]


def opened(root: Path, large: Large) -> Store:
    sizes = {"mappedFileSizeCommitLog": large.segment_size, "mappedFileSizeConsumeQueue": large.queue_file}
    return Store.open(root, config=config_of(sizes))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Bytes that were read of every file by its name in messages, as the test goes on."""
    counted: dict[str, int] = {}
    window = PreadSource.window

    def counting(self: PreadSource, offset: int, length: int) -> Any:
        found = window(self, offset, length)
        counted[self.name] = counted.get(self.name, 0) + found.size
        return found

    monkeypatch.setattr(PreadSource, "window", counting)
    return counted


@pytest.mark.share
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("release", RELEASES)
def test_holes_are_not_read(tmp_path: Path, read: dict[str, int], release: str, clean: bool) -> None:
    store = opened(SMALL.write(tmp_path / "store", clean=clean), SMALL)
    outcome = simulate(store, release)
    assert outcome.safe_to_start is True
    assert outcome.mode == ("normal" if clean else "abnormal")
    assert len(outcome.queues) == SMALL.queues
    assert {one.max_offset for one in outcome.queues} == {3 * SMALL.rounds}
    log = {name: size for name, size in read.items() if name.startswith("commitlog/")}
    assert len(log) == SMALL.segments
    # a window at the beginning, once more for dispatching; the holes behind it are asked for, not read
    assert max(log.values()) <= 4 * WINDOW_BYTES < SMALL.segment_size / 2
    queues = sum(size for name, size in read.items() if name.startswith("consumequeue/"))
    assert queues < SMALL.queues * 8 * SMALL.queue_file


def test_old_segments_are_read_up_to_the_allowance_youngest_first(
    tmp_path: Path, read: dict[str, int]
) -> None:
    store = opened(SMALL.write(tmp_path / "store", clean=True), SMALL)
    segments = [one.file for one in store.segments]
    allowance = sum(one.disk_bytes for one in segments[SMALL.segments // 2 : -1])
    outcome = simulate(store, "5.3.3", look_back=LookBack(allowance))
    assert outcome.not_looked_at == tuple(one.display_path for one in segments[: SMALL.segments // 2])
    assert outcome.unread_by_choice
    assert outcome.safe_to_start is None
    assert max(read.get(one.display_path, 0) for one in segments[: SMALL.segments // 2]) < 4096


def test_a_queue_that_lost_its_end_long_ago_is_seen(tmp_path: Path) -> None:
    """The queue's last messages lie in segments that the start does not read."""
    root = SMALL.write(tmp_path / "store", clean=True)
    victim = root / "consumequeue" / "T0003" / "2" / f"{0:020d}"
    victim.write_bytes(victim.read_bytes()[: 20 * 10].ljust(SMALL.queue_file, b"\0"))
    outcome = simulate(opened(root, SMALL), "5.3.3")
    harmed = [one for one in outcome.queues if one.repeated]
    assert [(one.topic, one.queue_id, one.repeated) for one in harmed] == [
        ("T0003", 2, 3 * SMALL.rounds - 10)
    ]
    assert outcome.safe_to_start is False


def test_many_starts_read_an_old_segment_once(tmp_path: Path, read: dict[str, int]) -> None:
    store = opened(SMALL.write(tmp_path / "store", clean=True), SMALL)
    back = LookBack()
    simulate(store, "5.3.3", look_back=back)
    first = next(iter(store.segments)).file.display_path
    once = read[first]
    assert simulate(store, "5.3.3", look_back=back).safe_to_start is True
    assert read[first] - once < 4096


@pytest.mark.parametrize("steps", [0, 5, 81, 100])
def test_time_may_end_anywhere(tmp_path: Path, steps: int) -> None:
    from rmqtool.recovery.simulation import reading_for

    store = opened(SMALL.write(tmp_path / "store", clean=True), SMALL)
    left = iter(range(steps))

    def advance(_: int) -> None:
        if next(left, None) is None:
            raise BudgetEndedError

    usual = reading_for(store)
    outcome = simulate(store, "5.3.3", reading=replace(usual, advance=advance))
    assert outcome.safe_to_start is None
    assert outcome.unread_by_choice
    assert outcome.not_looked_at


@pytest.fixture
def huge(tmp_path: Path) -> Iterator[Path]:
    """100 GiB that take 80 MiB."""
    root = tmp_path / "huge"
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.full
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_hundred_gibibytes_in_ten_seconds(huge: Path, release: str, clean: bool) -> None:
    Large().write(huge, clean=clean)
    ran = run_alone("doctor", huge, "--as-version", release, "--json")
    # of the processor: other work on the machine must not fail the test
    assert ran.cpu_seconds < 10
    document = json.loads(rmq("doctor", huge, "--as-version", release, "--json").stdout)
    assert document["safe_to_start"] is True
    assert len(document["queues"]) == 8000
