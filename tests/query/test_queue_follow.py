"""Following a queue while its files come and go."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from rmqtool.broker.get_message import Delivered
from rmqtool.broker.traits import traits_of
from rmqtool.query.missing_runs import MOST_RUNS, MissingRuns
from rmqtool.query.queue_follow import QueueFollow
from rmqtool.query.subscription import Subscription
from rmqtool.store.layout import Store
from tests.disks import replace
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(60)
def test_a_file_that_expires_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is listed once more, also where files in front of it went long ago."""
    root, gone = tmp_path / "store", f"consumequeue/T/0/{2000:020d}"
    with open_small(root, mappedFileSizeConsumeQueue=2000) as store:
        store.put_many([Message("T", bytes(300), queue_id=0) for _ in range(250)])
    (root / "consumequeue/T/0" / f"{0:020d}").unlink()
    real, expired = os.open, list[str]()

    def expiring(path: Any, *rest: Any, **more: Any) -> int:
        if isinstance(path, str | os.PathLike) and os.fspath(path).endswith(gone) and not expired:
            expired.append(os.fspath(path))
            (root / gone).unlink()
        return real(path, *rest, **more)

    following = QueueFollow(Store.open(root), "T", 0, 0, traits_of("5.3.3"), 50)
    replace(monkeypatch, "open", expiring)
    slots = [slot for found in following.batches(["queue_offset"]) if found is not None for slot in found[1]]
    assert len(expired) == 1
    assert slots == list(range(200, 250))


@pytest.mark.timeout(60)
def test_messages_that_expire_before_they_are_read_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who falls behind gets one row for each run of them, and none of the others is missing."""
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put_many([Message("T", b"body", queue_id=0) for _ in range(100)])
    segments = sorted(str(path) for path in (root / "commitlog").iterdir())
    real, expired = os.open, [segments[0], segments[2]]

    def expiring(path: Any, *rest: Any, **more: Any) -> int:
        if os.fspath(path) in expired and os.path.exists(path):
            os.unlink(path)
        return real(path, *rest, **more)

    following = QueueFollow(Store.open(root), "T", 0, 0, traits_of("5.3.3"))
    replace(monkeypatch, "open", expiring)
    slots = []
    for found in following.batches(["queue_offset"]):
        if found is None:
            break
        slots += found[1]
    lost = sorted({*range(100)} - {*slots})
    rows = following.not_covered()
    assert [row["reason"] for row in rows] == ["unreadable"] * 2
    assert sum(row["messages"] for row in rows) == len(lost) > 20
    assert [row["queue_offset"] for row in rows] == [one for one in lost if one - 1 not in lost]


def test_a_queue_of_which_much_is_lost_here_and_there_takes_no_more_rows(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        second = store.put_many([Message("T", b"body", queue_id=0) for _ in range(2)])[1].physical_offset
    assert second is not None
    some = [Delivered(one, one % 2, second) for one in range(2 * MOST_RUNS + 20)]
    runs = MissingRuns()
    found = runs.picked(Store.open(tmp_path / "store").segments, some, ["queue_offset"])
    assert sum(batch.num_rows for batch, _ in found) == len(some) // 2
    assert [row["messages"] for row in runs.rows] == [1] * (MOST_RUNS - 1) + [11]


@pytest.mark.timeout(60)
def test_a_file_that_takes_the_name_of_the_one_that_is_open(tmp_path: Path) -> None:
    """As a restored copy does: the file that was looked at gets no more entries."""
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put_many([Message("T", b"body", queue_id=0) for _ in range(8)])
    path = root / "consumequeue/T/0" / f"{0:020d}"
    whole = tmp_path / "whole"
    whole.write_bytes(path.read_bytes())
    path.write_bytes(whole.read_bytes()[: 5 * 20].ljust(path.stat().st_size, b"\0"))
    batches = QueueFollow(Store.open(root), "T", 0, 0, traits_of("5.3.3"), 8).batches(["queue_offset"])
    slots = next(found[1] for found in batches if found is not None)
    assert (slots, next(batches)) == ([0, 1, 2, 3, 4], None)
    replacing = threading.Timer(0.3, whole.rename, (path,))
    replacing.start()
    slots += [slot for found in batches if found is not None for slot in found[1]]
    replacing.join()
    assert slots == list(range(8))


def test_tags_behind_an_extension(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root, enableConsumeQueueExt=True) as store:
        store.put_many([Message("T", b"", queue_id=0, tags="AB"[number % 2]) for number in range(50)])
    wanted = Subscription.of("B")
    following = QueueFollow(Store.open(root), "T", 0, 0, traits_of("5.3.3"), 25, subscription=wanted)
    found = following.batches(["tags"])
    assert [slot for one in found if one is not None for slot in one[1]] == list(range(1, 50, 2))
