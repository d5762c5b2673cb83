"""Carrying out the steps of an undo; each may be done again after it was stopped."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.backup import file_path, piece_path
from rmqtool.repair.copying import copy_range, move_or_copy, temporary_of
from rmqtool.repair.facts import facts_at, facts_of, give_owner
from rmqtool.repair.undo_plan import Way
from rmqtool.store.names import escape_name
from rmqtool.store.writing import by_descriptor, open_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rmqtool.repair.disk import Disk
    from rmqtool.repair.journal import Entry, Journal
    from rmqtool.repair.undo_plan import Step


class UndoApply:
    """Old bytes and files from the journal in `directory`."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk, self._directory = disk, directory
        self._folders: set[str] = set()

    def run(self, journal: Journal, steps: Sequence[Step], left: Collection[str] = ()) -> None:
        """Directories that come back first, then bytes, then what was made goes, then files come back.

        Raises `OSError`.

        left: paths where something stays as it is; such a file keeps its time.
        """
        for entry in journal.entries:
            self._clear_temporary(entry)
        whole = [one for one in steps if one.way in {Way.PUT_BACK, Way.REMOVE}]
        back = [one.entry for one in whole if one.way is Way.PUT_BACK]
        for entry in sorted(back, key=lambda one: one.path):
            if entry.before.kind == "directory":
                self._make_directory(entry)
        inside: dict[str, list[Step]] = {}
        for step in steps:
            if step.way in {Way.BYTES, Way.CUT, Way.TIME}:
                inside.setdefault(step.entry.location, []).append(step)
        for parts in inside.values():
            self._edit(parts, keeps_time=parts[0].entry.path in left)
        made = [one.entry.location for one in whole if one.entry.before.kind != "directory"]
        for location in (one.entry.location for one in whole if one.way is Way.REMOVE):
            self._remove(location)
        for location in sorted(filter(os.path.isdir, made), reverse=True):
            self._remove_directory(location)
        for entry in back:
            self._back(entry)
        for entry in journal.entries:
            self._part(entry)
        for folder in sorted(filter(os.path.isdir, self._folders)):
            self._disk.sync_directory(folder)

    def _clear_temporary(self, entry: Entry) -> None:
        temporary = temporary_of(entry.location)
        if entry.pieces is None and os.path.lexists(temporary):
            self._disk.unlink(temporary)
            self._folders.add(os.path.dirname(temporary))

    def _make_directory(self, entry: Entry) -> None:
        if not os.path.isdir(entry.location):
            self._disk.make_directory(entry.location)
        with self._disk.opened(entry.location) as descriptor:
            if facts_at(descriptor).uid != entry.before.uid and os.listdir(by_descriptor(descriptor)):
                raise OSError(errno.EPERM, "another user's directory lies there", entry.location)
            give_owner(self._disk, descriptor, entry.before, entry.location)
        self._folders.add(os.path.dirname(entry.location))

    def _remove_directory(self, location: str) -> None:
        if not os.listdir(location):
            self._disk.remove_directory(location)
            self._folders.add(os.path.dirname(location))

    def _edit(self, steps: Sequence[Step], *, keeps_time: bool) -> None:
        """Restores regions of one file, and its time."""
        entry = steps[0].entry
        path = entry.location
        mtime_ns = facts_of(path).mtime_ns if keeps_time else entry.before.mtime_ns
        descriptor = self._disk.open(path)
        try:
            end = resized_from(entry)
            whole = any(one.position == end for one in steps)
            if whole:
                self._disk.truncate(descriptor, end, path)
                self._disk.truncate(descriptor, entry.before.size, path)
            for step in steps:
                if step.way is Way.BYTES and step.position is not None:
                    self._bytes(step, descriptor, fresh=step.position == end)
            self._disk.sync(descriptor, path)
            self._disk.set_mtime(path, mtime_ns, descriptor)
            self._disk.sync(descriptor, path)
        finally:
            os.close(descriptor)

    def _bytes(self, step: Step, descriptor: int, *, fresh: bool) -> None:
        position, length = step.position or 0, step.length or 0
        saved = piece_path(self._directory, step.entry.path, position)
        source = os.open(saved, os.O_RDONLY | os.O_CLOEXEC)
        try:
            whole = (0, position, length)
            copy_range(self._disk, source, descriptor, whole, step.entry.location, fresh=fresh)
        finally:
            os.close(source)

    def _remove(self, location: str) -> None:
        if os.path.lexists(location) and not os.path.isdir(location):
            self._disk.unlink(location)
        self._folders.add(os.path.dirname(location))

    def _back(self, entry: Entry) -> None:
        location = entry.location
        if entry.before.kind == "file":
            self._put_back(entry)
        elif entry.before.kind == "link":
            temporary = temporary_of(location)
            self._disk.symlink(entry.before.target or "", temporary)
            with self._disk.opened(temporary) as descriptor:
                if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                    give_owner(self._disk, descriptor, entry.before, temporary)
                    self._disk.set_mtime(temporary, entry.before.mtime_ns, descriptor)
            self._disk.rename(temporary, location)
        elif entry.before.kind == "directory":
            self._disk.set_mtime(location, entry.before.mtime_ns)
        self._folders.add(os.path.dirname(location))

    def _part(self, entry: Entry) -> None:
        """A file that is in its place again is no longer in the backup, too."""
        saved = file_path(self._directory, entry.path)
        there = entry.before.kind == "file" and os.path.lexists(saved) and os.path.lexists(entry.location)
        if there and os.path.samefile(saved, entry.location):
            self._disk.unlink(saved)

    def _put_back(self, entry: Entry) -> None:
        saved = file_path(self._directory, entry.path)
        if not os.path.lexists(saved):
            if facts_of(entry.location).size != entry.before.size:
                raise StoreIOError(
                    f"{escape_name(saved)}: is gone, {escape_name(entry.path)} cannot come back"
                )
            return
        self._part(entry)  # renaming one of two names of a file to the other does nothing
        if os.path.lexists(saved):
            descriptor = open_regular(saved)
            try:
                give_owner(self._disk, descriptor, entry.before, saved)
                self._disk.set_mtime(saved, entry.before.mtime_ns, descriptor)
            finally:
                os.close(descriptor)
            move_or_copy(self._disk, saved, entry.location, keep_source=False)


def resized_from(entry: Entry) -> int:
    """Where the region begins that was cut or added; -1 when the size stayed."""
    found = [one.position for one in entry.pieces or () if one.before != one.after]
    return found[0] if found else -1
