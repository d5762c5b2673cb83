"""What the generator found once, each as the smallest store that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures.stores import HandmadeStore
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def orders(root: Path, count: int = 60) -> HandmadeStore:
    """Messages of two queues in segments of 4 KiB and queue files of 20 units."""
    store = HandmadeStore()
    for number in range(count):
        store.put("Orders", b"body %d" % number * 4, queue_id=number % 2, tags="TagA", keys=f"k{number}")
    return store.write(root)


def test_a_pull_where_the_last_queue_file_begins_with_zeros(tmp_path: Path) -> None:
    """Release 5 reads in front of the file's first unit, throws, and goes on with 0 as the minimum."""
    store = orders(tmp_path / "store")
    store.patch("consumequeue/Orders/0/00000000000000000400", 0, bytes(400))
    told = rmq("query-offset", store.root, "Orders", 0, 3, "--json", "--as-version", "5.3.3")
    assert told.exit_code == 0
    assert '"min_offset":0,' in told.stdout


def test_a_segment_that_is_a_copy_of_another_is_not_complete(tmp_path: Path) -> None:
    """Its records are listed where they lie, and everybody who asks is told that others are missing."""
    store = orders(tmp_path / "store", 90)
    store.patch("commitlog/00000000000000004096", 0, store.read("commitlog/00000000000000000000"))
    assert rmq("export", store.root, "--to", tmp_path / "out.ndjson").exit_code == 3
    assert rmq("stats", store.root, "--json").exit_code == 3
    told = rmq("sql", store.root, "select topic from messages", "--json")
    assert told.exit_code == 3
    assert '"incomplete_reason":"damage"' in told.stdout
    assert "other physical offsets" in told.stdout
    assert rmq("dump", store.root, "--format", "ndjson").exit_code == 1


def test_sql_tells_of_bodies_that_fail_their_crc(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path, position = store.segment(store.stored[7].offset)
    store.patch(path, position + 90, b"?")
    told = rmq("sql", store.root, "select count(*) from messages", "--json")
    assert told.exit_code == 3
    assert "1 body fails its CRC" in told.stdout
    assert '"not_looked_at":["bodies"]' in rmq("stats", store.root, "--json").stdout
