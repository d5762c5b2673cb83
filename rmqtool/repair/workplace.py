"""A directory for what a plan derives and is large, and what a command that was killed left of itself.

The directory lies beside the result, so that files can be moved from it, and goes when the command ends. One
that is killed leaves it behind, and the empty lock file that it may have made in the store. A note in the
directory says so to the next command that changes the same store with its result in the same place, which
removes both. Whoever is at work holds a lock on the note.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING

from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.holding import Held

_PREFIX = "rmqtool-work-"
_NOTE = "store.json"
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class _Note:
    """A store before a command began. store: as `escape_name` writes it. locked: it had a lock file."""

    store: str
    locked: bool
    mtime_ns: int


@dataclass(frozen=True)
class WorkPlace:
    """directory: empty, for the command. removed: what killed ones had left, absolute.

    before: the store before the first of them.
    """

    directory: str
    removed: tuple[str, ...]
    before: _Note

    def adopt_lock(self, held: Held) -> None:
        """The empty lock file that a killed command had made is taken for one that `held` made."""
        if held.made or self.before.locked or os.fstat(held.descriptor).st_size:
            return
        held.made = True
        root, file = os.stat(held.root), os.fstat(held.descriptor)
        if abs(root.st_mtime_ns - file.st_mtime_ns) < _SECOND_NS:  # nothing came or went in the root since
            held.root_mtime_ns = self.before.mtime_ns


@contextmanager
def work_place(beside: str | None, root: str | os.PathLike[str]) -> Iterator[WorkPlace]:
    """A work directory for a change of the store at `root`, next to the path `beside` if it may be there."""
    place = None if beside is None else os.path.realpath(_existing(os.path.dirname(os.path.abspath(beside))))
    before = _note_of(os.path.realpath(root))
    left = [] if place is None else [one for one in _left_in(place) if one[1].store == before.store]
    for path, note in left:
        shutil.rmtree(path, ignore_errors=True)
        before = before if note.locked else note
    with _temporary(place) as made, open(os.path.join(made, _NOTE), "x", encoding="ascii") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        json.dump(asdict(before), mine)
        mine.flush()
        directory = os.path.join(made, "work")
        os.mkdir(directory)
        yield WorkPlace(directory, tuple(path for path, _ in left), before)


def _existing(place: str) -> str:
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    return place


def _temporary(place: str | None) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=f".{_PREFIX}" if place else _PREFIX, dir=place or _temp())
    except PermissionError:
        return tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_temp())


def _temp() -> str:
    return os.path.realpath(tempfile.gettempdir())  # what is moved from there has no link on its way


def _note_of(root: str) -> _Note:
    return _Note(escape_name(root), os.path.lexists(os.path.join(root, "lock")), os.stat(root).st_mtime_ns)


def _left_in(place: str) -> Iterator[tuple[str, _Note]]:
    """Directories whose command is no more. One without a whole note may just begin: it stays."""
    for name in os.listdir(place):
        path = os.path.join(place, name)
        if not name.startswith(f".{_PREFIX}"):
            continue
        with (
            suppress(OSError, ValueError, TypeError),
            open(os.path.join(path, _NOTE), encoding="ascii") as note,
        ):
            if _is_free(note):
                yield path, _Note(**json.load(note))


def _is_free(note: IO[str]) -> bool:
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
