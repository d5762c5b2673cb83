"""A segment of another store in the place of one: the log is whole, and entries tell."""

from __future__ import annotations

import json
import shutil
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from fixtures.compound.ground import plain_store
from fixtures.stores import HandmadeStore
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

NAME = f"{4096:020d}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Six queues, four of them with entries that lead into the second segment, which is another store's."""
    store = plain_store(Random(3)).write(tmp_path / "store").root
    plain_store(Random(3)).write(tmp_path / "healthy")
    other = plain_store(Random(4)).write(tmp_path / "other").root
    shutil.copy(other / "commitlog" / NAME, store / "commitlog" / NAME)
    return store


def asked(store: Path, tmp_path: Path) -> list[tuple[int, Any]]:
    """Exit code, and what was not covered, of those that list messages."""
    commands: list[tuple[object, ...]] = [
        ("stats", store, "--json"),
        ("sql", store, "select count(*) from messages", "--json"),
        ("retry", store, "--json"),
    ]
    done = [rmq(*one) for one in commands]
    found = [(one.exit_code, json.loads(one.stdout)["summary"].get("not_covered")) for one in done]
    exported = rmq("export", store, "--to", tmp_path / "x.ndjson", "--json")
    return [*found, (exported.exit_code, json.loads(exported.stdout).get("not_covered"))]


def test_entries_tell_that_messages_are_lost(store: Path, tmp_path: Path) -> None:
    for code, rows in asked(store, tmp_path):
        assert code == 3
        (row,) = rows
        assert (row["path"], row["reason"]) == (f"commitlog/{NAME}", "damage")
        assert row["error"].startswith("the entries of 4 queues lead to other records than lie here")


def test_where_messages_are_not_wanted_nothing_is_missing(store: Path) -> None:
    for offsets, code in ((":4096", 0), ("4096:8192", 3), ("8192:", 0)):
        assert rmq("stats", store, "--offset-range", offsets).exit_code == code


def test_without_entries_nothing_contradicts_the_log(store: Path, tmp_path: Path) -> None:
    shutil.rmtree(store / "consumequeue")
    assert [code for code, _ in asked(store, tmp_path)] == [0, 0, 0, 0]


def test_a_file_of_another_queue_says_nothing_of_the_log(tmp_path: Path) -> None:
    store = plain_store(Random(3)).write(tmp_path / "store").root
    queues = store / "consumequeue" / "Orders"
    for file in sorted((queues / "1").iterdir()):
        shutil.copy(file, queues / "0" / file.name)
    assert [code for code, _ in asked(store, tmp_path)] == [0, 0, 0, 0]


def test_a_damaged_entry_says_nothing_of_the_log(tmp_path: Path) -> None:
    store = plain_store(Random(3)).write(tmp_path / "store").root
    for file in sorted(store.glob("consumequeue/*/*/*")):
        data = bytearray(file.read_bytes())
        data[11] ^= 1  # of the first entry the size
        file.write_bytes(data)
    assert [code for code, _ in asked(store, tmp_path)] == [0, 0, 0, 0]


def test_a_segment_in_which_a_queue_among_many_has_all_entries(tmp_path: Path) -> None:
    """Seventy queues with three files each say nothing of it."""
    for topic in ("Rest", "Best"):
        store = HandmadeStore()
        for number in range(70 * 41):
            store.put("Orders", b"%d" % number, queue_id=number % 70)
        for number in range(39):
            store.put(topic, b"%3d" % number * 50)
        store.write(tmp_path / topic)
    base = store.of("Best")[20].offset // 4096 * 4096
    shutil.copy(tmp_path / "Best/commitlog" / f"{base:020d}", tmp_path / "Rest/commitlog")
    done = rmq("stats", tmp_path / "Rest", "--json")
    assert done.exit_code == 3
    (row,) = json.loads(done.stdout)["summary"]["not_covered"]
    assert row["path"] == f"commitlog/{base:020d}"
    assert row["error"].startswith("the entries of 1 queue lead")


def test_who_looks_for_a_message_that_it_displaced_is_told(store: Path, tmp_path: Path) -> None:
    """By its key in the index, by its id, and by an offset message id; other messages are just not there."""
    lost = next(one for one in strict.carve(tmp_path / "healthy").values() if one.offset > 4096)
    host = lost.raw[64:72].hex().upper()
    for code, unique, offset in ((3, lost.properties["UNIQ_KEY"], lost.offset), (1, f"{7:032X}", 100)):
        assert rmq("query-key", store, lost.topic, unique).exit_code == code
        assert rmq("query-id", store, unique).exit_code == code
        assert rmq("query-id", store, f"{host}{offset:016X}").exit_code == code
