"""Writing the journal of an in-place apply into its backup directory, before the store is touched."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError
from rmqtool.repair.copying import move_or_copy
from rmqtool.repair.digests import sha256_of_file
from rmqtool.repair.facts import Facts, facts_of
from rmqtool.repair.journal import JOURNAL, STATE, Entry, Journal, Piece
from rmqtool.repair.places import InStore
from rmqtool.repair.plan import Action, tool_version
from rmqtool.repair.regions import (
    edits_by_file,
    make_parents,
    regions_of,
    save_region,
    set_aside,
)
from rmqtool.repair.room import existing_above
from rmqtool.repair.written import write_document
from rmqtool.store.access import describe_mode
from rmqtool.store.names import escape_name, unescape_name

if TYPE_CHECKING:
    from rmqtool.repair.disk import Disk
    from rmqtool.repair.journal import State
    from rmqtool.repair.plan import Change, Planned
    from rmqtool.repair.regions import Region
    from rmqtool.store.holding import Held
    from rmqtool.store.layout import Store

PARTS = ("files", "ranges", JOURNAL, STATE)
_LEFTOVERS = {*PARTS, f"{JOURNAL}.part", f"{STATE}.part"}


@dataclass(frozen=True, slots=True)
class BackupNeeds:
    """Bytes that the backup takes: ranges are copied, whole files only to another file system."""

    ranges: int
    files: int

    @property
    def total(self) -> int:
        """Both."""
        return self.ranges + self.files


def backup_needs(store: Store, planned: Planned, backup: str) -> BackupNeeds:
    """What must be copied before a plan is carried out in place. Raises `OSError`."""
    places, files = InStore(store), 0
    device = os.stat(existing_above(backup)).st_dev
    kept: Counter[str] = Counter()
    for path, changes in edits_by_file(planned.plan.changes).items():
        size = facts_of(places.of(path), follow=True).size
        kept[path] += sum(one.before for one in regions_of(changes, size))
    for path, region in set_aside(planned.plan.changes):
        kept[path] += region.before
    # holes are copied as holes
    ranges = sum(min(length, os.stat(places.of(path)).st_blocks * 512) for path, length in kept.items())
    for change in planned.plan.changes:
        location = places.of(change.path)
        if change.action in {Action.PUT, Action.REMOVE} and facts_of(location).kind == "file":
            found = os.stat(location)
            if found.st_dev != device:
                files += min(found.st_size, found.st_blocks * 512)
    return BackupNeeds(ranges, files)


def reusable(directory: str) -> bool:
    """Whether nothing but the remains of a journal that was never finished lies in a directory."""
    names = set(os.listdir(directory))
    return JOURNAL not in names and names <= _LEFTOVERS


def clear_backup(directory: str) -> None:
    """Removes a journal whose store is as it was before, the journal file first."""
    for name in (JOURNAL, STATE, f"{JOURNAL}.part", f"{STATE}.part"):
        if os.path.lexists(os.path.join(directory, name)):
            os.unlink(os.path.join(directory, name))
    for name in ("files", "ranges"):
        shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


class Backup:
    """One journal on its way. Make it, call `write` once."""

    def __init__(
        self, disk: Disk, store: Store, planned: Planned, directory: str, held: Held, places: InStore
    ) -> None:
        self._disk, self._planned, self._directory, self._held = disk, planned, directory, held
        self._places = places
        self._root = os.path.realpath(store.root)
        self._further = tuple(os.path.realpath(one) for one in store.roots[1:])
        self._folders: dict[str, Facts] = {}

    def write(self) -> Journal:
        """Saves everything and returns the journal, which is then on the medium. Raises `OSError`."""
        if not os.path.isdir(self._directory):
            make_parents(self._disk, self._directory, mode=0o777)
            self._disk.make_directory(self._directory)
            self._disk.sync_directory(os.path.dirname(self._directory))
        commitlog = os.path.realpath(os.path.join(self._root, "commitlog"))
        made = not os.path.isdir(commitlog)
        self._note_directory(self._root if made or self._held.made else commitlog)
        for folder in (commitlog, *self._further):
            self._note_directory(folder)
        entries = [*self._edited(), *self._named()]
        for path, region in set_aside(self._planned.plan.changes):
            self._save(self._places.content_of(path), path, region)
        for folder, _, _ in os.walk(self._directory, topdown=False):
            self._disk.sync_directory(folder)
        journal = Journal(
            journal_id=secrets.token_hex(8),
            tool_version=tool_version(),
            created_timestamp=time.time_ns() // 1_000_000,
            store=self._root,
            marker_directory=commitlog,
            further_markers=self._further,
            made_marker_directory=made,
            made_lock=self._held.made,
            entries=tuple(entries),
            directories=self._folders,
            plan=self._planned.plan,
        )
        path = os.path.join(self._directory, JOURNAL)
        write_document(self._disk, path, journal.model_dump(mode="json", by_alias=True))
        return journal

    def _note_directory(self, location: str) -> None:
        location = os.path.realpath(location)
        if location in self._folders or not os.path.isdir(location):
            return
        facts = facts_of(location, follow=True)
        if location == self._root:
            facts = facts.model_copy(update={"mtime_ns": self._held.root_mtime_ns})
        self._folders[location] = facts

    def _edited(self) -> list[Entry]:
        entries = []
        for path, changes in edits_by_file(self._planned.plan.changes).items():
            location = self._places.content_of(path)
            before = facts_of(location)
            if before.kind != "file":
                raise PlanRefusedError(f"{escape_name(path)}: the plan changes it, but it is not a file")
            pieces = tuple(
                Piece(
                    position=one.position,
                    before=one.before,
                    after=one.after,
                    sha256=self._save(location, path, one) if one.before else "",
                )
                for one in regions_of(changes, before.size)
            )
            entries.append(Entry(path=path, location=location, before=before, pieces=pieces))
        return entries

    def _save(self, location: str, path: str, region: Region) -> str:
        target = piece_path(self._directory, path, region.position)
        self._make_parents(target)
        save_region(self._disk, location, region, target)
        return sha256_of_file(target)

    def _named(self) -> list[Entry]:
        """Paths that come, go or are replaced as a whole, and directories that must be made for them."""
        entries: dict[str, Entry] = {}
        for change in self._planned.plan.changes:
            inside = change.action in {Action.WRITE, Action.RESIZE, Action.SET_ASIDE}
            if inside or change.path in entries:
                continue
            entries[change.path] = self._whole(change)
            self._note_directory(os.path.dirname(entries[change.path].location))
        return list(entries.values())

    def _whole(self, change: Change) -> Entry:
        location = self._places.of(change.path)
        before = facts_of(location)
        digest = None
        if before.kind == "file":
            target = file_path(self._directory, change.path)
            self._make_parents(target)
            move_or_copy(self._disk, location, target, keep_source=True)
            before = facts_of(target)  # of what was kept: something else may have taken its place meanwhile
            digest = sha256_of_file(target)
        elif before.kind == "other":
            what = describe_mode(os.lstat(location).st_mode)
            raise PlanRefusedError(
                f"{escape_name(change.path)} is {what}, which undo could not put back: move it away first, "
                "or write to --output"
            )
        return Entry(path=change.path, location=location, before=before, sha256=digest)

    def _make_parents(self, target: str) -> None:
        make_parents(self._disk, target, self._directory)


def _below(path: str) -> str:
    """A path of the store as one below a directory; those of further commit-log roots begin with `..`."""
    return "/".join("up" if part == ".." else part for part in unescape_name(path).split("/")).lstrip("/")


def piece_path(directory: str, path: str, position: int) -> str:
    """Where the old bytes of a region are kept."""
    return os.path.join(directory, "ranges", f"{_below(path)}@{position}")


def file_path(directory: str, path: str) -> str:
    """Where a whole old file is kept."""
    return os.path.join(directory, "files", _below(path))


def write_state(disk: Disk, directory: str, state: State) -> None:
    """Notes how far things got, synced. Raises `OSError`."""
    write_document(disk, os.path.join(directory, STATE), state.model_dump(mode="json"))
