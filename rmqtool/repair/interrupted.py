"""A store whose apply was stopped: seen, and brought back to where it began."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError
from rmqtool.repair.authentic import read_journal
from rmqtool.repair.backup import clear_backup
from rmqtool.repair.in_place import finish
from rmqtool.repair.journal import JOURNAL, Phase
from rmqtool.repair.marker import find_marker
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.repair.disk import Disk
    from rmqtool.repair.marker import Marker
    from rmqtool.store.holding import Held


def refuse_if_interrupted(root: str | os.PathLike[str]) -> None:
    """Raises `PlanRefusedError` when a store is between two states, with the command that helps."""
    marker = find_marker(root)
    if marker is not None:
        raise PlanRefusedError(in_the_middle(root, marker))


def in_the_middle(root: str | os.PathLike[str], marker: Marker) -> str:
    """How a store came to have this marker, and what helps."""
    shown = escape_name(os.fspath(root))
    if marker.torn:
        return (
            f"{escape_name(marker.path)}.part is left of an apply that was stopped before it changed "
            "anything: remove that file"
        )
    if marker.journal is None:
        return f"{shown} is an unfinished copy: remove it"
    journal = escape_name(marker.journal)
    return (
        f"an apply was stopped in the middle of {shown}: rmqtool undo {journal} --apply puts it back, "
        f"the same command with --backup {journal} completes it"
    )


def bring_back(
    root: str | os.PathLike[str], backup: str, held: Held, disk: Disk, *, follow_links: bool = False
) -> str | None:
    """Makes a store that was stopped in the middle of an apply with this backup fit for planning again.

    What was half done is put back and the journal cleared; what was done but for the marker is finished.
    Returns what was done in words, None when there was nothing to do. Raises what `plan_undo` and `undo`
    raise, and `PlanRefusedError` when the marker is of another journal.
    """
    marker = find_marker(root)
    if not os.path.exists(os.path.join(backup, JOURNAL)):
        refuse_if_interrupted(root)
        return None
    directory, journal, state = read_journal(backup, follow_links=follow_links)
    mine = journal.store == os.path.realpath(root)
    if not mine or (marker is not None and not marker.belongs_to(journal.journal_id)):
        refuse_if_interrupted(root)
        return None
    if state.phase is Phase.APPLIED:
        if marker is not None:
            finish(disk, journal, directory, marker.path, state)
            return "an apply that was stopped at its very end is complete now"
        return None
    if state.phase in {Phase.DONE, Phase.UNDONE}:
        return None
    from rmqtool.repair.undo import plan_undo, undo

    undo(plan_undo(directory, follow_links=follow_links), held, disk=disk)
    clear_backup(directory)
    return "an apply was stopped here: it was put back and starts over"
