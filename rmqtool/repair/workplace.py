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
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from secrets import token_hex
from typing import IO, TYPE_CHECKING

from rmqtool.store.names import escape_name
from rmqtool.store.trust import refuse_foreign_temporary
from rmqtool.store.writing import Folder, way_to

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
    """A work directory for a change of the store at `root`, next to the path `beside` if it may be there.

    It is held: `WorkPlace.directory` leads into it whatever becomes of its name.
    """
    before = _note_of(os.path.realpath(root))
    with ExitStack() as stack:
        place = None
        removed = []
        if beside is not None:
            place = stack.enter_context(way_to(os.path.dirname(os.path.abspath(beside)), "beside")[0])
            for name, note, left in _left_in(place):
                if note.store != before.store:
                    continue
                with suppress(OSError):
                    place.remove_held(name, left)
                before = before if note.locked else note
                removed.append(os.path.join(place.path, name))
        made = stack.enter_context(_temporary(place))
        mine = stack.enter_context(open(made.create(_NOTE), "w", encoding="ascii"))
        fcntl.flock(mine, fcntl.LOCK_EX)
        json.dump(asdict(before), mine)
        mine.flush()
        with made.make("work") as work:
            yield WorkPlace(work.here, tuple(removed), before)


@contextmanager
def _temporary(place: Folder | None) -> Iterator[Folder]:
    """A new directory, among the temporary files where this user may not make any; it goes at the end."""
    with ExitStack() as stack:
        name = f"{'.' if place else ''}{_PREFIX}{token_hex(4)}"
        try:
            parent = place or stack.enter_context(_temp())
            made = parent.make(name)
        except PermissionError:
            parent = stack.enter_context(_temp())
            made = parent.make(name)
        with made:
            try:
                yield made
            finally:
                for _ in range(2):  # its directories move up first, for which what goes first makes room
                    with suppress(OSError):
                        parent.remove_held(name, made)
                        break


def _temp() -> Folder:
    refuse_foreign_temporary()
    return way_to(tempfile.gettempdir(), "TMPDIR")[0]


def _note_of(root: str) -> _Note:
    return _Note(escape_name(root), os.path.lexists(os.path.join(root, "lock")), os.stat(root).st_mtime_ns)


def _left_in(place: Folder) -> Iterator[tuple[str, _Note, Folder]]:
    """Directories whose command is no more. One without a whole note may just begin: it stays."""
    for name in place.names():
        if not name.startswith(f".{_PREFIX}"):
            continue
        with (
            suppress(OSError, ValueError, TypeError),
            place.enter(name) as folder,
            open(folder.again(_NOTE), encoding="ascii") as note,
        ):
            if _is_free(note):
                yield name, _Note(**json.load(note)), folder


def _is_free(note: IO[str]) -> bool:
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
