"""Queue files that are gone at either end of a queue, where the log has expired in part."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.stores import HandmadeStore, healthy_store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

LOW = 8192
"""the first two segments have expired"""


@pytest.fixture
def store(tmp_path: Path) -> HandmadeStore:
    """Two queues of 120 messages, six files each, less what has expired."""
    store = HandmadeStore()
    for number in range(240):
        store.put("Orders", b"body %d" % number * 4, queue_id=number % 2, tags="TagA")
    store.write(tmp_path / "store")
    for base in range(0, LOW, 4096):
        store.remove(f"commitlog/{base:020d}")
    for queue_id in (0, 1):
        own = store.of("Orders", queue_id)
        for start in range(0, len(own), 20):
            if own[start + 19].offset < LOW:
                store.remove(f"consumequeue/Orders/{queue_id}/{start * 20:020d}")
    return store


def files(store: HandmadeStore) -> list[Path]:
    return sorted((store.root / "consumequeue/Orders/0").iterdir())


def ask(command: str, store: HandmadeStore, value: object, code: int, *more: str) -> dict[str, Any]:
    reported = rmq(command, store.root, "Orders", 0, value, "--json", *more)
    assert reported.exit_code == code, reported.stdout
    summary: dict[str, Any] = json.loads(reported.stdout)["summary"]
    return summary


def without_unit(summary: dict[str, Any]) -> list[tuple[int, int]]:
    rows = summary.get("not_covered") or ()
    return [
        (row["queue_offset"], row["messages"])
        for row in rows
        if "without a consume queue entry" in row.get("error", "")
    ]


def test_what_has_expired_is_no_damage(store: HandmadeStore) -> None:
    for offset in ("min", "max"):
        assert without_unit(ask("query-offset", store, offset, 0)) == []
    ask("query-time", store, store.stored[0].time, 0)
    ask("query-time", store, store.stored[-1].time, 0, "--boundary", "upper")


def test_a_queue_that_was_silent_while_the_file_expired(tmp_path: Path) -> None:
    """Its first file begins behind the start of the log, and nothing lies in front of it."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"old %d" % number)
    for number in range(90):
        store.put("Others", b"body %d" % number)
    for number in range(20):
        store.put("Orders", b"new %d" % number)
    store.write(tmp_path / "store")
    store.remove("commitlog/00000000000000000000")
    store.remove("consumequeue/Orders/0/00000000000000000000")
    assert store.of("Orders")[19].offset < 4096
    assert without_unit(ask("query-offset", store, "min", 0)) == []


def test_a_first_file_that_is_gone(store: HandmadeStore) -> None:
    low = next(one.queue_offset for one in store.of("Orders") if one.offset >= LOW)
    gone = files(store)[0]
    gone.unlink()
    first = int(gone.name) // 20 + 20
    for command, value in (("query-offset", "min"), ("query-time", store.stored[100].time)):
        assert without_unit(ask(command, store, value, 3)) == [(low, first - low)]
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", store.root, "--as-version", release).exit_code == 1
    assert rmq("verify", store.root).exit_code == 1


@pytest.mark.parametrize("gone", [1, 2])
def test_a_last_file_that_is_gone(store: HandmadeStore, gone: int) -> None:
    for file in files(store)[-gone:]:
        file.unlink()
    last = 120 - 20 * gone
    assert without_unit(ask("query-offset", store, last + 3, 3)) == [(last, 20 * gone)]
    assert without_unit(ask("query-offset", store, "max", 3)) == [(last, 20 * gone)]
    assert without_unit(ask("query-offset", store, last - 5, 0)) == []
    time = store.of("Orders")[last + 3].time
    for more in ((), ("--boundary", "upper")):
        assert without_unit(ask("query-time", store, time, 3, *more)) == [(last, 20 * gone)]


def test_units_of_the_last_file_that_are_zero(store: HandmadeStore) -> None:
    path, position = store.queues["Orders", 0].place(110)
    store.patch(path, position, bytes(200))
    assert without_unit(ask("query-offset", store, 112, 3)) == [(110, 10)]


def test_a_queue_without_files(store: HandmadeStore) -> None:
    shutil.rmtree(store.root / "consumequeue/Orders/0")
    own = [one for one in store.of("Orders") if one.offset >= store.stored[-1].offset // 4096 * 4096 - LOW]
    assert without_unit(ask("query-offset", store, "max", 3)) == [(own[0].queue_offset, len(own))]


def test_all_queues_that_end_early_are_behind(store: HandmadeStore) -> None:
    """A broker that was killed: its start dispatches the rest."""
    for one in store.stored[-8:]:
        assert one.unit
        store.patch(*one.unit, bytes(20))
    summary = ask("query-offset", store, 117, 1)
    assert without_unit(summary) == []
    assert [one["cause"] for one in summary["verdicts"]] == ["above_max", "not_dispatched"]


def test_a_unit_of_another_queue_that_leads_to_no_record_proves_nothing(store: HandmadeStore) -> None:
    for one in store.stored[-8:]:
        assert one.unit
        store.patch(*one.unit, bytes(20))
    wrong = (store.stored[-1].offset - 3).to_bytes(8, "big")
    path, position = store.queues["Orders", 1].place(115)
    store.patch(path, position, wrong)
    assert without_unit(ask("query-offset", store, 117, 1)) == []


def test_a_search_by_time_meets_a_file_of_another_queue(store: HandmadeStore) -> None:
    """The message that it lists is of the queue; others that were asked for their time are not."""
    other = store.read(store.queues["Orders", 1].place(60)[0])
    store.patch(store.queues["Orders", 0].place(60)[0], 0, other)
    for slot in (30, 100):
        summary = ask("query-time", store, store.of("Orders")[slot].time, 3)
        assert summary["queue_offset"] == slot
        (row,) = summary["not_covered"]
        assert (row["messages"], row["physical_offset"]) == (20, store.of("Orders", 1)[60].offset)
        assert row["queue_offset"] == 60
        assert row["error"].endswith("other queues (20 of them), the first to one of Orders/1")


def test_of_a_log_searched_in_part_the_number_is_the_least(tmp_path: Path) -> None:
    """Nobody looks further than into the last segments for a queue without files."""
    store = healthy_store().write(tmp_path / "store")
    lost = len(store.of("Payments", 1))
    shutil.rmtree(store.root / "consumequeue/Payments/1")
    done = rmq("query-offset", store.root, "Payments", 1, 0, "--json")
    (row,) = json.loads(done.stdout)["summary"]["not_covered"]
    assert row["messages"] < lost
    assert row["error"].startswith(f"at least {row['messages']} messages of the queue lie in the log")
