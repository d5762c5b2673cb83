"""A store of a few files, and a plan that does one of everything to it."""

from __future__ import annotations

import os
from pathlib import Path

from rmqtool.repair.content import Inline, Joined, Zeros
from rmqtool.repair.disk import Disk
from rmqtool.repair.plan import Action, Change, Edit, Planned, make_planned
from rmqtool.store.layout import Store

SEGMENT = "commitlog/00000000000000000000"
SECOND = "commitlog/00000000000000065536"
STRAY = "commitlog/00000000000000131072"
QUEUE = "consumequeue/T/0/00000000000000000000"
OWNER = 1234
FILES = {
    SEGMENT: b"A" * 65536,
    SECOND: b"B" * 9000,
    STRAY: b"C" * 4096,
    QUEUE: b"D" * 2000,
    "consumequeue/T/1/00000000000000000000": b"E" * 20,
    "checkpoint": bytes(4096),
    "config/topics.json": b"{}",
    "abort": b"",
    "lock": b"lock",
}


def make_store(root: Path) -> Path:
    """The store, every file and directory with a modification time of its own; of another user for root."""
    for number, (path, data) in enumerate(FILES.items()):
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o640)
        os.utime(place, ns=(1, 1_600_000_000_000_000_000 + number * 1_000_000_007))
    for number, place in enumerate(sorted((one for one in root.rglob("*") if one.is_dir()), reverse=True)):
        os.utime(place, ns=(1, 1_500_000_000_000_000_000 + number * 1_000_000_009))
    os.utime(root, ns=(1, 1_400_000_000_000_000_000))
    if os.geteuid() == 0:
        for place in (root, *root.rglob("*")):
            os.chown(place, OWNER, OWNER)
    return root


def edit(action: Action, path: str, data: bytes | None = None, **facts) -> Edit:
    content = None if data is None else Inline(data)
    length = None if content is None else content.size
    return Edit(Change(action=action, path=path, length=length, why="test", message="-", **facts), content)


def everything() -> list[Edit]:
    """One of every action."""
    whole = Joined((Inline(b"new unit"), Zeros(5000)))
    return [
        edit(Action.WRITE, SEGMENT, b"tombstone", position=100),
        edit(Action.WRITE, SEGMENT, b"second", position=40000),
        edit(Action.RESIZE, SECOND, size=65536),
        edit(Action.WRITE, SECOND, b"behind the old end", position=20000),
        edit(Action.WRITE, SECOND, b"before it", position=8000),
        edit(Action.REMOVE, STRAY),
        Edit(
            Change(
                action=Action.PUT,
                path=QUEUE,
                length=whole.size,
                size=whole.size,
                mtime_ns=1_700_000_000_000_000_000,
                why="test",
                message="-",
            ),
            whole,
        ),
        edit(Action.REMOVE, "consumequeue/T/1/00000000000000000000"),
        edit(Action.REMOVE_DIRECTORY, "consumequeue/T/1"),
        edit(Action.MAKE_DIRECTORY, "consumequeue/U"),
        edit(Action.MAKE_DIRECTORY, "consumequeue/U/0"),
        edit(Action.PUT, "consumequeue/U/0/00000000000000000000", b"unit" * 5),
        edit(Action.RESIZE, "checkpoint", size=40),
        edit(Action.REMOVE, "abort"),
    ]


def plan_of(store: Store, edits: list[Edit]) -> Planned:
    return make_planned("test", store, "5.3.3", {"policy": "all"}, edits, inputs=store.files)


def planner(store: Store, parameters: dict, work: str) -> Planned:
    return plan_of(store, everything())


def tree(root: Path) -> dict[str, tuple]:
    """Everything that an undo must restore: kind, mode, owner, size, time and bytes of every path."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        facts = path.lstat()
        if path.is_symlink():
            content: object = os.readlink(path)
        else:
            content = path.read_bytes() if path.is_file() else None
        key = path.relative_to(root).as_posix()
        found[key] = (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, content)
    return found


def without_times(found: dict[str, tuple]) -> dict[str, tuple]:
    return {path: (*facts[:3], facts[4]) for path, facts in found.items()}


class StopsAt(Disk):
    """Ends at step `number`, by what `how` does there."""

    def __init__(self, number: int, how) -> None:
        self.steps, self._number, self._how = 0, number, how

    def before(self, what: str, path: str) -> None:
        if self.steps == self._number:
            self._how(what, path)
        self.steps += 1


def failing(number: int):
    """What a disk does at a step that fails with this error number."""

    def fail(what: str, path: str) -> None:
        raise OSError(number, os.strerror(number))

    return fail
