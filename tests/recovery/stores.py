"""Stores that several modules of tests of this room start: made by hand, or goldens with a change."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from fixtures import copy_base
from fixtures.builder import HandmadeLog
from fixtures.timers import timers_moved
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.store.lock import LockState

SEGMENT = 4096
STATE_LINKS = [
    (name, where, release)
    for name in ("lock", "checkpoint", "abort", "abort.bak")
    for where in ("missing/x", "there/x", "itself")
    for release in ("4.9.8", "5.3.3")
]
"""name, where it leads to, release: see `linked`"""


def write(root: Path, log: HandmadeLog) -> Path:
    """A store below `root` that has this log, and queues of no entry."""
    log.write(root / "commitlog")
    (root / "consumequeue").mkdir()
    return root


def start(root: Path, release: str = "5.3.3", lock: LockState | None = None, **settings: Any) -> Outcome:
    """What a start of a store of such small files would do."""
    given = {"mappedFileSizeCommitLog": SEGMENT, "mappedFileSizeConsumeQueue": 400, **settings}
    return simulate(Store.open(root, config=config_of(given)), release, lock=lock)


def filled(count: int = 30, **more: Any) -> HandmadeLog:
    """A log of so many messages of 200 bytes for two queues; more: fields of all of them."""
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(count):
        log.put("T", b"x" * 200, {"TAGS": "a"}, queue_id=number % 2, **more)
    return log


def with_huge_record(root: Path) -> int:
    """A store with a record that states half a GiB as its size; where it lies."""
    log = filled()
    place = log.records[20].physical_offset
    path = write(root, log) / "commitlog" / f"{place // SEGMENT * SEGMENT:020d}"
    raw = bytearray(path.read_bytes())
    raw[place % SEGMENT : place % SEGMENT + 4] = (512 << 20).to_bytes(4, "big")
    path.write_bytes(raw)
    return place


def linked(name: str, where: str, release: str, place: Path) -> tuple[Path, Outcome]:
    """A store after a crash, with a link that leads nowhere in the place of a file of its state."""
    root = copy_base(f"v{release.replace('.', '')}-a-crash", place / "store")
    (place / "there").mkdir()
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(name if where == "itself" else place / where)
    sizes = config_of({"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 4000})
    return root, simulate(Store.open(root, config=sizes), release)


def patched(path: Path, position: int, data: bytes) -> None:
    """The file has these bytes at that position."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def timer_store(golden: Callable[[str], Golden], root: Path, **times: int) -> int:
    """A store whose broker stopped so many ms ago; by how many its times are later than the golden's."""
    shutil.copytree(golden("b533-timer").path, root)
    return timers_moved(root, **times)
