"""Following a queue while its files come and go."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from rmqtool.broker.traits import traits_of
from rmqtool.query.queue_follow import QueueFollow
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
