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
