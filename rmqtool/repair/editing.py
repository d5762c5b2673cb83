"""Carrying out the edits of a plan, one after the other, wherever its paths lie."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Protocol

from rmqtool.errors import StoreIOError
from rmqtool.repair.content import FromFile, Zeros
from rmqtool.repair.copying import temporary_of
from rmqtool.repair.facts import Facts, facts_of, give_owner
from rmqtool.repair.plan import Action
from rmqtool.store.writing import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqtool.repair.content import Content
    from rmqtool.repair.disk import Disk, Identity
    from rmqtool.repair.plan import Change, Edit


class Places(Protocol):
    """Tells where a path of the plan lies."""

    def of(self, path: str) -> str:
        """Absolute location."""
        ...

    def content_of(self, path: str) -> str:
        """The same of what a link at its end leads to."""
        ...


def check_order(edits: Iterable[Edit]) -> None:
    """Raises `ValueError` unless a path is either put, or removed, or written and resized once at most.

    In the place of a file that is removed a directory may be made.
    """
    seen: dict[str, set[Action]] = {}
    for edit in edits:
        if edit.change.action is Action.SET_ASIDE:
            continue
        before = seen.setdefault(edit.change.path, set())
        action = edit.change.action
        together = {Action.WRITE, Action.RESIZE}
        again = action is not Action.WRITE and action in before
        instead = (before, action) == ({Action.REMOVE}, Action.MAKE_DIRECTORY)
        if again or (before and not instead and not (before | {action}) <= together):
            raise ValueError(f"{edit.change.path}: {action} after {', '.join(sorted(before))}")
        if action in {Action.WRITE, Action.PUT} and edit.content is None:
            raise ValueError(f"{edit.change.path}: {action} without content")
        before.add(action)


class Editor:
    """Runs edits with `run`, then `finish` sets times and syncs.

    replaced: facts of what a path was in the store that the plan is for. owner: those of the store's root,
    for what replaces nothing. readers: permissions that new files may have (`modes.readers_of`).
    """

    def __init__(
        self,
        disk: Disk,
        places: Places,
        replaced: Callable[[str], Facts],
        owner: Facts,
        advance: Callable[[int], object] | None = None,
        readers: int = 0o777,
    ) -> None:
        self._readers = readers
        self._disk, self._places, self._replaced, self._owner = disk, places, replaced, owner
        self._advance = advance or (lambda _: None)
        self._times: dict[str, int] = {}
        self._directories: set[str] = set()
        self._made: list[tuple[str, Change, Identity]] = []

    def run(self, edits: Iterable[Edit]) -> None:
        """All edits in order. Raises `OSError`, and what reading their content raises."""
        for edit in edits:
            change, location = edit.change, self._places.of(edit.change.path)
            if change.action in {Action.WRITE, Action.RESIZE}:
                location = self._places.content_of(change.path)  # a link's own time is nobody's business
            if edit.content is not None and change.action is Action.WRITE:
                self._write(change, location, edit.content)
            elif edit.content is not None and change.action is Action.PUT:
                self._put(change, location, edit.content)
            elif change.action is Action.RESIZE:
                self._resize(change, location)
            elif change.action is not Action.SET_ASIDE:
                self._name(change, location)

    def finish(self) -> None:
        """Modification times of edited files, everything synced; owners of new directories, inner ones first.

        Before, nobody else may change what is in them. Times of other directories are the caller's.
        """
        for location, mtime_ns in self._times.items():
            descriptor = self._disk.open(location)
            try:
                self._disk.set_mtime(location, mtime_ns, descriptor)
                self._disk.sync(descriptor, location)
            finally:
                os.close(descriptor)
        for directory in sorted(self._directories):
            if os.path.isdir(directory):
                self._disk.sync_directory(directory)
        for location, change, made in reversed(self._made):
            was = self._replaced(change.path)
            facts = was if was.kind == "directory" else self._owner
            with self._disk.opened(location, made) as descriptor:
                if change.mtime_ns is not None:
                    self._disk.set_mtime(location, change.mtime_ns, descriptor)
                give_owner(self._disk, descriptor, facts, location)
                self._disk.sync_directory(location, descriptor)

    def _edited(self, change: Change, location: str) -> None:
        """Notes the time that an edited file gets: the one asked for, else the one that it had."""
        if change.mtime_ns is not None:
            self._times[location] = change.mtime_ns
        else:
            self._times.setdefault(location, facts_of(location, follow=True).mtime_ns)

    def _write(self, change: Change, location: str, content: Content) -> None:
        self._edited(change, location)
        position = change.position or 0
        descriptor = self._disk.open(location)
        try:
            if position + content.size > os.fstat(descriptor).st_size:
                raise StoreIOError(f"{change.path}: the plan writes past its end")
            for piece in content.chunks():
                self._disk.write(descriptor, piece, position, location)
                position += len(piece)
                self._advance(len(piece))
        finally:
            os.close(descriptor)

    def _resize(self, change: Change, location: str) -> None:
        self._edited(change, location)
        descriptor = self._disk.open(location)
        try:
            self._disk.truncate(descriptor, change.size or 0, location)
        finally:
            os.close(descriptor)

    def _put(self, change: Change, location: str, content: Content) -> None:
        temporary = temporary_of(location)
        if os.path.lexists(temporary):
            self._disk.unlink(temporary)
        was = self._replaced(change.path)
        mode = was.mode if was.kind == "file" else self._owner.mode & 0o666 & self._readers
        owner = was if was.exists else self._owner
        kept = Facts(kind="file", uid=owner.uid, gid=owner.gid, mode=mode)
        mtime_ns = was.mtime_ns if change.mtime_ns is None and was.kind == "file" else change.mtime_ns
        descriptor = self._filled(temporary, content)
        try:
            give_owner(self._disk, descriptor, kept, temporary)
            if mtime_ns is not None:
                self._disk.set_mtime(temporary, mtime_ns, descriptor)
            self._disk.sync(descriptor, temporary)
        finally:
            os.close(descriptor)
        self._disk.rename(temporary, location)
        self._directories.add(os.path.dirname(location))

    def _filled(self, temporary: str, content: Content) -> int:
        """A descriptor of the new file."""
        if isinstance(content, FromFile) and content.movable:
            moved = self._moved(content, temporary)
            if moved is not None:
                return moved
        descriptor = self._disk.create(temporary)
        try:
            self._disk.truncate(descriptor, content.size, temporary)
            position = 0
            for piece in () if isinstance(content, Zeros) else content.chunks():
                if bytes(piece).count(0) != len(piece):  # zeros stay a hole
                    self._disk.write(descriptor, piece, position, temporary)
                position += len(piece)
                self._advance(len(piece))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _moved(self, content: FromFile, temporary: str) -> int | None:
        descriptor = open_regular(content.path)
        try:
            if content.position or os.fstat(descriptor).st_size != content.size:
                os.close(descriptor)
                return None
            self._disk.rename(content.path, temporary)
        except OSError as error:
            os.close(descriptor)
            if error.errno != errno.EXDEV:
                raise
            return None
        self._advance(content.size)
        return descriptor

    def _name(self, change: Change, location: str) -> None:
        if change.action is Action.REMOVE:
            if os.path.lexists(location):
                self._disk.unlink(location)
        elif change.action is Action.REMOVE_DIRECTORY:
            if os.path.isdir(location):
                self._disk.remove_directory(location)
        elif not os.path.isdir(location):
            self._made.append((location, change, self._disk.make_directory(location)))
        self._directories.add(os.path.dirname(location))
