"""Whether a journal is one that this user or root wrote, and speaks of its store alone.

Undo writes and removes what a journal names, as root perhaps. So nobody else may be able to change the
journal or the way to it, and the places in it are derived again: from the store's root, or
a further commit-log root, and a relative path. An archive that root unpacks is root's own, so that is not
enough: the root must be a store's, directories of segments hold some, and paths be such as stores have.
"""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.repair.journal import JOURNAL, STATE, Journal, Phase, State, journal_directory, parse_as
from rmqtool.repair.places import inside
from rmqtool.repair.written import read_document
from rmqtool.store.access import stat_named
from rmqtool.store.kinds import ROOT_FILES, TOP_DIRECTORIES
from rmqtool.store.names import escape_name, parse_base_offset, unescape_name
from rmqtool.store.roots import looks_like_root
from rmqtool.store.trust import changed_by_others, foreign_component

if TYPE_CHECKING:
    from rmqtool.repair.journal import Entry

_WHOLE_FILES = "files"
"""where files that left the store lie: they are still their owner's, and their digest is checked"""


def read_journal(given: str, *, follow_links: bool = False) -> tuple[str, Journal, State]:
    """The journal in a directory, and its state; see this module for what is asked of both.

    Raises `UsageError` when there is none or it is not to be trusted, `NewerFormatError` for one of a later
    rmqtool, `StoreIOError`.
    """
    stat_named(given, escape_name(given))
    directory = journal_directory(given)
    path = os.path.join(directory, JOURNAL)
    if not os.path.exists(path):
        raise UsageError(f"{escape_name(given)} is not an undo journal: it has no {JOURNAL}")
    authenticate(directory)
    journal = parse_as(Journal, read_document(path, "an undo journal"), path, "an undo journal")
    journal = with_derived_places(journal, follow_links=follow_links)
    state_path = os.path.join(directory, STATE)
    if not os.path.exists(state_path):
        return directory, journal, State(phase=Phase.PREPARED)
    state = parse_as(State, read_document(state_path, "a journal state"), state_path, "a journal state")
    for entry in journal.entries:
        after = state.after.get(entry.path)
        if after is not None and len(after.pieces) != len(entry.pieces or ()):
            raise UsageError(f"{escape_name(state_path)} does not belong to this journal: {entry.path}")
    return directory, journal, state


def refuse_foreign(directory: str, option: str) -> None:
    """Raises `UsageError` when another user could change what lies in a directory, or put another there."""
    try:
        foreign = foreign_component(directory)
    except OSError as error:
        raise StoreIOError(f"{escape_name(directory)}: {error.strerror}") from error
    if foreign is not None:
        raise UsageError(
            f"{option} {escape_name(directory)}: another user may change {escape_name(foreign)}; "
            "a journal is kept where only this user and root may"
        )


def authenticate(directory: str) -> None:
    """Raises `UsageError` unless only this user and root can change a journal."""
    refuse_foreign(directory, "the journal")
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(os.path.join(directory, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                if _is_ours(entry.stat(follow_symlinks=False), path):
                    waiting += [path] if entry.is_dir(follow_symlinks=False) else []
                    continue
                raise UsageError(
                    f"the journal {escape_name(directory)}: {escape_name(path)} is not from this user or root"
                )


def _is_ours(found: os.stat_result, path: str) -> bool:
    if stat.S_ISREG(found.st_mode) and path.startswith(_WHOLE_FILES + os.sep):
        return True
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return plain and not changed_by_others(found, last=True)


def with_derived_places(journal: Journal, *, follow_links: bool = False) -> Journal:
    """The journal with every place derived again and no set-uid and set-gid bits; they must be those in it.

    follow_links: links may lead out of the store, as they did when it was changed with `--follow-links`.
    Raises `UsageError` naming the first place that is another.
    """
    store = journal.store
    if not os.path.isabs(store) or os.path.realpath(store) != store:
        raise _elsewhere(journal, store)
    if os.path.isdir(store) and not looks_like_root(store):
        raise UsageError(f"{escape_name(store)}, the store of this journal, is not a store")
    if journal.marker_directory != os.path.realpath(os.path.join(store, "commitlog")):
        raise _elsewhere(journal, journal.marker_directory)
    for further in journal.further_markers:
        if not os.path.isabs(further) or os.path.realpath(further) != further:
            raise _elsewhere(journal, further)
    linked = (
        [] if journal.marker_directory == os.path.join(store, "commitlog") else [journal.marker_directory]
    )
    for place in (*linked, *journal.further_markers):
        if not _may_hold_segments(place):
            raise _elsewhere(journal, place)
    entries = tuple(_derived(journal, entry, follow_links) for entry in journal.entries)
    known = {os.path.dirname(one.location) for one in entries}
    for folder in journal.directories:
        if folder not in known and (os.path.realpath(folder) != folder or not _in_roots(journal, folder)):
            raise _elsewhere(journal, folder)
    return journal.model_copy(update={"entries": entries})


def _derived(journal: Journal, entry: Entry, follow_links: bool) -> Entry:
    path = unescape_name(entry.path)
    if "\0" in path or "\0" in entry.location:
        raise _elsewhere(journal, path)
    if path.startswith("../"):
        name = posixpath.basename(path)
        found = [os.path.join(one, name) for one in journal.further_markers]
        place = entry.location if entry.location in found else None
    else:
        place = _below_root(journal, entry.path)
    if place is None:
        raise _elsewhere(journal, entry.path)
    folder, name = os.path.split(place)
    if name in {"", os.curdir}:
        raise _elsewhere(journal, entry.path)
    if entry.pieces is not None:
        real = os.path.realpath(place)
        same = entry.location == real
    else:
        real = os.path.join(os.path.realpath(folder), name)
        same = entry.location in {place, real}
    if not same or not (follow_links or _in_roots(journal, real)):
        raise _elsewhere(journal, entry.location)
    before = entry.before.model_copy(update={"mode": entry.before.mode & ~(stat.S_ISUID | stat.S_ISGID)})
    return entry.model_copy(update={"location": real, "before": before})


def _below_root(journal: Journal, path: str) -> str | None:
    """Where a path of a plan lies; None for one that leads out, or that no store has at its root.

    A further directory of the commit log may lie in the store, under any name.
    """
    try:
        name = inside(path)
    except ValueError:
        return None
    top = name.split("/")[0]
    known = top in TOP_DIRECTORIES or top in ROOT_FILES or top.startswith("dledger-")
    place = os.path.join(journal.store, name)
    return place if known or os.path.dirname(place) in journal.further_markers else None


def _may_hold_segments(directory: str) -> bool:
    """Whether segments lie in a directory, or nothing does."""
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    return not names or any(parse_base_offset(name) is not None for name in names)


def _in_roots(journal: Journal, place: str) -> bool:
    roots = (journal.store, journal.marker_directory, *journal.further_markers)
    return any(place == one or place.startswith(one.rstrip(os.sep) + os.sep) for one in roots)


def _elsewhere(journal: Journal, place: str) -> UsageError:
    return UsageError(
        f"the journal names {escape_name(place)}, which is not, or no longer, a place of its store "
        f"{escape_name(journal.store)} (behind links out of it: --follow-links)"
    )
