"""Applying a plan to the store itself: `--in-place --backup DIR`.

Order: the lock, the journal (synced), the marker (synced), the edits, synced, the state "applied", the marker
away. So a changed store always has a journal, and a store between two states always has the marker.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError, RmqtoolError, StoreIOError, UsageError
from rmqtool.repair.authentic import refuse_foreign
from rmqtool.repair.backup import Backup, backup_needs, clear_backup, reusable, write_state
from rmqtool.repair.digests import sha256_of_file
from rmqtool.repair.disk import Disk
from rmqtool.repair.editing import Editor, check_order
from rmqtool.repair.facts import Facts, facts_of, give_owner
from rmqtool.repair.journal import STATE, After, Journal, Phase, State
from rmqtool.repair.marker import NAME, place_marker, refuse_without_place, remove_marker
from rmqtool.repair.places import InStore, Roots, is_within, lies_in
from rmqtool.repair.plan import Action
from rmqtool.repair.room import demand_room, existing_above, written_bytes
from rmqtool.store.access import in_words
from rmqtool.store.modes import readers_of
from rmqtool.store.names import escape_name
from rmqtool.store.writing import open_for_writing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rmqtool.repair.journal import Entry
    from rmqtool.repair.plan import Planned
    from rmqtool.store.holding import Held
    from rmqtool.store.layout import Store


def check_backup_place(store: Store, backup: str) -> None:
    """Raises `UsageError` unless `backup` is outside the store and, if it is there, a directory."""
    shown = escape_name(backup)
    if lies_in(backup, store):
        raise UsageError(f"--backup {shown}: lies inside the store")
    if is_within(store.root, backup):
        raise UsageError(f"--backup {shown}: the store lies inside it")
    if os.path.lexists(backup) and not os.path.isdir(backup):
        raise UsageError(f"--backup {shown}: exists and is not a directory")
    refuse_foreign(backup, "--backup")


def check_backup(store: Store, backup: str) -> None:
    """Raises `UsageError` unless `backup` is outside the store and new, empty, or a journal not finished."""
    check_backup_place(store, backup)
    if os.path.isdir(backup) and not reusable(backup):
        raise UsageError(f"--backup {escape_name(backup)}: exists and is not empty")


def apply_in_place(
    store: Store,
    planned: Planned,
    backup: str,
    held: Held,
    *,
    follow_links: bool = False,
    disk: Disk | None = None,
    advance: Callable[[int], object] | None = None,
) -> Journal:
    """Carries out a plan that was made while `held` was held; returns the journal, which is in `backup`.

    follow_links: also behind links that lead out of the store. Raises `UsageError` for such a link and for a
    backup directory that cannot be one, `PlanRefusedError` when an input was changed, and `StoreIOError` when
    the disk refuses: then the store is as before if no journal was finished, else the marker is there and
    `undo` or the same command again goes on.
    """
    disk = disk or Disk()
    check_order(planned.edits)
    check_backup(store, backup)
    refuse_without_place(os.fspath(store.root))
    refuse_moved(store, planned)
    refuse_blocked(store, planned)
    places = InStore(store)
    if not follow_links:
        refuse_links_out(store, planned, places)
    same_inputs(store, planned)
    demand_writable(planned, places)
    backup = os.path.realpath(backup)
    _demand(store, planned, backup)
    try:
        journal = _backed_up(Backup(disk, store, planned, backup, held, places), backup)
        _apply_changes(disk, store, planned, backup, journal, places, advance)
    except (OSError, RmqtoolError) as error:
        kind = PlanRefusedError if isinstance(error, PlanRefusedError) else StoreIOError
        raise kind(f"{in_words(error)}; {how_it_stands(store, backup)}") from error
    return journal


def _backed_up(one: Backup, directory: str) -> Journal:
    """The finished journal. Where it is not finished, nothing of it stays, nor a directory made for it."""
    made, place = list[str](), directory
    while not os.path.isdir(place):
        made.append(place)
        place = os.path.dirname(place)
    if not made:
        clear_backup(directory)
    try:
        return one.write()
    except (OSError, RmqtoolError):
        with suppress(OSError):
            clear_backup(directory)
            for path in made:
                os.rmdir(path)
        raise


def refuse_moved(store: Store, planned: Planned) -> None:
    """Raises `PlanRefusedError` when links lead to another directory than the one that was planned for."""
    if os.path.realpath(store.root) != planned.plan.store:
        raise PlanRefusedError(f"{escape_name(planned.plan.store)} is another directory now: plan again")


def refuse_blocked(store: Store, planned: Planned) -> None:
    """Raises `PlanRefusedError` naming what is not a directory, or one, where the plan needs the other."""
    places = InStore(store)
    changes = planned.plan.changes
    checked = {
        places.of(one.path) for one in changes if one.action in {Action.REMOVE, Action.REMOVE_DIRECTORY}
    }
    for change in changes:
        if change.action not in {Action.PUT, Action.MAKE_DIRECTORY}:
            continue
        place = places.of(change.path)
        if change.action is Action.PUT and place not in checked and facts_of(place).kind == "directory":
            raise PlanRefusedError(
                f"{escape_name(place)} is a directory, where a file has to lie: "
                "move it away and plan again; nothing was changed"
            )
        folder = place if change.action is Action.MAKE_DIRECTORY else os.path.dirname(place)
        while folder not in checked and not os.path.isdir(folder):
            if os.path.lexists(folder):
                raise PlanRefusedError(
                    f"{escape_name(folder)} is not a directory, and {change.path} has to lie in it: "
                    "move it away and plan again; nothing was changed"
                )
            checked.add(folder)
            folder = os.path.dirname(folder)


def refuse_links_out(store: Store, planned: Planned, places: InStore | None = None) -> None:
    """Raises `UsageError` naming the first path that a link takes out of the store.

    places: keeps the others as they were looked at.
    """
    places, roots = places or InStore(store), Roots(store)
    for change in planned.plan.changes:
        inside = change.action in {Action.WRITE, Action.RESIZE}
        place = places.content_of(change.path) if inside else places.of(change.path)
        if not roots.have(place):
            raise UsageError(
                f"{change.path} leads out of the store by a link, to {escape_name(place)}: "
                "nothing is written there without --follow-links"
            )


def demand_writable(planned: Planned, places: InStore) -> None:
    """Raises `StoreIOError` naming the first file that the plan writes in and that cannot be opened."""
    inside = {one.path: None for one in planned.plan.changes if one.action in {Action.WRITE, Action.RESIZE}}
    for path in inside:
        try:
            os.close(open_for_writing(places.content_of(path)))
        except OSError as error:
            raise StoreIOError(f"{escape_name(path)}: {error.strerror}; nothing was changed") from error


def same_inputs(store: Store, planned: Planned) -> None:
    """Raises `PlanRefusedError` naming the first file that is no longer as it was when it was planned."""
    known = {one.display_path: one for one in store.files}
    for one in planned.plan.inputs:
        file = known.get(one.path)
        found = facts_of(file.location, follow=True) if file is not None else Facts()
        if not found.exists:
            raise PlanRefusedError(f"{one.path} is gone since the plan was made: plan again")
        if (found.size, found.mtime_ns) != (one.size, one.mtime_ns):
            raise PlanRefusedError(f"{one.path} has changed since the plan was made: plan again")


def _demand(store: Store, planned: Planned, backup: str) -> None:
    needs = backup_needs(store, planned, backup)
    root = os.path.realpath(store.root)
    device = os.stat(root).st_dev
    new = written_bytes(planned.edits, device)
    parent = existing_above(backup)
    if os.stat(parent).st_dev == device:
        demand_room(root, new + needs.total)
    else:
        demand_room(root, new)
        demand_room(parent, needs.total)


def _apply_changes(
    disk: Disk,
    store: Store,
    planned: Planned,
    backup: str,
    journal: Journal,
    places: InStore,
    advance: Callable[[int], object] | None,
) -> None:
    root = facts_of(journal.store)
    marker = begin_marker(disk, journal, backup)
    before = {one.path: one.before for one in journal.entries}

    def replaced(path: str) -> Facts:
        found = before.get(path, Facts())
        return Facts() if found.kind == "link" else found

    editor = Editor(disk, places, replaced, root, advance, readers_of(store))
    editor.run(planned.edits)
    editor.finish()
    _settle(disk, journal, planned)
    state = state_after(journal)
    write_state(disk, backup, state)
    finish(disk, journal, backup, marker, state)


def finish(disk: Disk, journal: Journal, backup: str, marker: str, state: State) -> None:
    """The last steps of an apply when everything is written."""
    end_marker(disk, journal, marker, state.directories)
    write_state(disk, backup, state.model_copy(update={"phase": Phase.DONE}))


def begin_marker(disk: Disk, journal: Journal, backup: str) -> str:
    """The marker is there, in a directory that is made where there is none; its path."""
    folder = journal.marker_directory
    if not os.path.isdir(folder):
        root = facts_of(journal.store)
        made = disk.make_directory(folder)
        with disk.opened(folder, made) as descriptor:
            give_owner(disk, descriptor, root, folder)
    marker = place_marker(disk, folder, backup, journal.journal_id)
    for further in journal.further_markers:
        place_marker(disk, further, backup, journal.journal_id)
    return marker


def end_marker(disk: Disk, journal: Journal, marker: str, times: Mapping[str, int]) -> None:
    """Takes the markers away, the main one last, and the directory that was made for it.

    times: modification times that their directories get, by location.
    """
    folder = journal.marker_directory
    for further in journal.further_markers:
        remove_marker(disk, os.path.join(further, NAME))
        _set_time(disk, further, times)
    remove_marker(disk, marker)
    if journal.made_marker_directory and os.path.isdir(folder) and not os.listdir(folder):
        disk.remove_directory(folder)
        disk.set_mtime(journal.store, journal.directories[journal.store].mtime_ns)
    else:
        _set_time(disk, folder, times)


def _set_time(disk: Disk, folder: str, times: Mapping[str, int]) -> None:
    if folder in times and os.path.isdir(folder):
        disk.set_mtime(folder, times[folder])
        disk.sync_directory(folder)


def _settle(disk: Disk, journal: Journal, planned: Planned) -> None:
    """Directories in which nothing came or went keep their times: temporary files leave no trace."""
    comes = {Action.MAKE_DIRECTORY, Action.REMOVE, Action.REMOVE_DIRECTORY}
    known = {one.path: one for one in journal.entries}
    changed = set()
    for change in planned.plan.changes:
        entry = known.get(change.path)
        if entry is None:
            continue
        if change.action in comes or (change.action is Action.PUT and not entry.before.exists):
            changed.add(os.path.realpath(os.path.dirname(entry.location)))
    for location, facts in journal.directories.items():
        if location not in changed and os.path.isdir(location):
            disk.set_mtime(location, facts.mtime_ns)


def state_after(journal: Journal) -> State:
    """What lies at every path of the journal now. Raises `StoreIOError`, `OSError`."""
    after = {one.path: _after(one) for one in journal.entries}
    folders = {one: facts_of(one, follow=True).mtime_ns for one in journal.directories if os.path.isdir(one)}
    return State(phase=Phase.APPLIED, after=after, directories=folders)


def _after(entry: Entry) -> After:
    facts = facts_of(entry.location)
    if entry.pieces is not None:
        digests = tuple(sha256_of_file(entry.location, one.position, one.after) for one in entry.pieces)
        return After(facts=facts, pieces=digests)
    return After(facts=facts, sha256=sha256_of_file(entry.location) if facts.kind == "file" else None)


def how_it_stands(store: Store, backup: str) -> str:
    """What an apply that was stopped left, and what to do."""
    if not os.path.lexists(os.path.join(store.root, "commitlog", NAME)):
        done = os.path.exists(os.path.join(backup, STATE))
        return "the change itself is complete" if done else "the store was not changed"
    shown = escape_name(backup)
    return (
        f"the store is half changed and no broker starts on it: rmqtool undo {shown} --apply puts it back, "
        "the same command again completes it"
    )
