"""What lies in the place of a directory or file that a broker needs, or will need later."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import healthy_store
from rmqtool.check.layout import check_layout
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import start, timer_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden


@pytest.mark.share
@shows("DR-BLOCKED-DIRECTORY")
@pytest.mark.parametrize(
    "path", ["commitlog", "consumequeue", "consumequeue/Orders", "consumequeue/Orders/1"]
)
@pytest.mark.parametrize("link", [False, True])
def test_what_lies_in_the_place_of_a_directory(tmp_path: Path, path: str, link: bool) -> None:
    """4.9.8 refuses all messages after 30 s, 5.3.3 starts after 30 s and gives queue offsets again."""
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / path, link=link)
    outcome = start(root)
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].facts["path"] == path


@pytest.mark.parametrize("path", ["timerlog", "batchconsumequeue"])
def test_what_only_brokers_of_5_need_a_directory_for(tmp_path: Path, path: str) -> None:
    """5.3.3 starts and takes messages with a delivery time, which are then never delivered."""
    root = healthy_store().write(tmp_path / "store").root
    shutil.rmtree(root / path, ignore_errors=True)
    (root / path).write_bytes(b"-")
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].paths == (path,)
    assert "DR-BLOCKED-DIRECTORY" not in codes(simulate(Store.open(root), "4.9.8"))


@shows("DR-BLOCKED")
def test_without_an_index_nothing_minds_what_lies_in_its_place(tmp_path: Path) -> None:
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / "index", link=False)
    outcome = start(root, messageIndexEnable=False)
    assert of(outcome, "DR-BLOCKED")[0].facts["path"] == "index"
    assert outcome.verdict is Verdict.SAFE


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_what_lies_in_the_place_of_the_index_ends_all_dispatching(
    tmp_path: Path, release: str, link: bool
) -> None:
    """After a clean start the first message does; what the start itself dispatches ends it."""
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / "index", link=link)
    outcome = simulate(Store.open(root), release)
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].facts["path"] == "index"
    assert outcome.starts
    (root / "abort").touch()
    again = simulate(Store.open(root), release)
    assert again.refusal is not None
    assert (again.refusal.code, again.refusal.path) == ("index-unopenable", "index")


def test_a_start_that_waits_for_dispatching_never_ends_without_an_index(tmp_path: Path) -> None:
    root = healthy_store().write(tmp_path / "store").root
    shutil.rmtree(root / "consumequeue")
    _replace(root / "index", link=False)
    refusal = simulate(Store.open(root), "4.9.8").refusal
    assert refusal is not None
    assert (refusal.code, refusal.path) == ("dispatch-stuck", "index")


@pytest.mark.share
@shows("DR-BLOCKED-FILE")
@pytest.mark.parametrize("suffix", ["", ".bak"])
@pytest.mark.parametrize(
    "table", ["consumerOffset.json", "topics.json", "subscriptionGroup.json", "delayOffset.json"]
)
def test_a_directory_in_the_place_of_a_table(tmp_path: Path, table: str, suffix: str) -> None:
    """4.9.7 and 5.3.3 start, and what they keep in it is forgotten with their stop."""
    root = healthy_store().write(tmp_path / "store").root
    (root / "config" / (table + suffix)).unlink(missing_ok=True)
    (root / "config" / (table + suffix)).mkdir()
    for release in ("4.9.8", "5.3.3"):
        outcome = simulate(Store.open(root), release)
        assert outcome.starts
        assert outcome.verdict is Verdict.UNSAFE
        assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (f"config/{table}{suffix}",)
    assert "DIR-DIRECTORY" in {one.code for one in check_layout(Store.open(root))}


@shows("DR-BLOCKED-FILE")
@pytest.mark.parametrize("place", ["commitlog", "consumequeue/Orders/0"])
def test_a_directory_where_log_or_queue_will_grow(tmp_path: Path, place: str) -> None:
    """5.3.3 passes over it when it starts, and answers CREATE_MAPPED_FILE_FAILED when it comes there."""
    root = healthy_store().write(tmp_path / "store").root
    last = max((root / place).iterdir())
    path = f"{place}/{int(last.name) + last.stat().st_size:020}"
    (root / path).mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (path,)


@shows("DR-BLOCKED-FILE")
def test_a_directory_where_the_timer_log_will_grow(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """5.3.3 starts, and delivers no timer from then on (30 of 30 that were sent)."""
    root = tmp_path / "store"
    timer_store(golden, root)
    last = max((root / "timerlog").iterdir())
    path = f"timerlog/{int(last.name) + last.stat().st_size:020}"
    (root / path).mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    (found,) = of(outcome, "DR-BLOCKED-FILE")
    assert found.paths == (path,)
    assert "are never delivered" in found.message
    assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE


def test_a_directory_where_the_start_itself_makes_a_queue_file(tmp_path: Path) -> None:
    """5.3.3 tries for half a minute for every message that it dispatches."""
    root = healthy_store().write(tmp_path / "store").root
    (root / "abort").touch()
    last = max((root / "consumequeue/Orders/0").iterdir())
    last.unlink()
    last.mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (f"consumequeue/Orders/0/{last.name}",)


@shows("DR-REFUSE-TIMER-FILE")
@pytest.mark.parametrize("path", ["config", "config/timercheck", "timerwheel"])
def test_no_place_for_a_file_of_the_timers(tmp_path: Path, path: str) -> None:
    """5.3.3 ends before it loads its store, so that nothing is lost; 4.9 has no such timers."""
    root = healthy_store().write(tmp_path / "store").root
    if path == "config":
        _replace(root / path, link=False)
    else:
        (root / path).mkdir(parents=True)
    outcome = simulate(Store.open(root), "5.3.3")
    assert of(outcome, "DR-REFUSE-TIMER-FILE")
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.refusal.path) == ("timer-file", path)
    assert not outcome.deletes
    assert not any(queue.lost for queue in outcome.queues)
    assert simulate(Store.open(root), "4.9.8").starts
    assert start(root, timerWheelEnable=False).starts


def test_a_directory_in_the_place_of_the_first_segment(tmp_path: Path) -> None:
    """What has expired leaves none: the messages of that segment are not there any more."""
    store = healthy_store().write(tmp_path / "store")
    first = min((store.root / "commitlog").iterdir())
    size = first.stat().st_size
    first.unlink()
    first.mkdir()
    outcome = simulate(Store.open(store.root), "5.3.3")
    assert outcome.verdict is Verdict.DAMAGED
    assert of(outcome, "DR-GAP")[0].facts == {"start": 0, "end": size}
    first.rmdir()
    assert simulate(Store.open(store.root), "5.3.3").verdict is Verdict.SAFE


def _replace(place: Path, *, link: bool) -> None:
    shutil.rmtree(place)
    if link:
        place.symlink_to(place.parent / "not-mounted")
    else:
        place.write_bytes(b"")
