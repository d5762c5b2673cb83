"""Putting back what an in-place apply changed, from its journal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError, StoreIOError, UsageError
from rmqtool.repair.authentic import read_journal
from rmqtool.repair.backup import file_path, piece_path, write_state
from rmqtool.repair.digests import sha256_of_file
from rmqtool.repair.disk import Disk
from rmqtool.repair.facts import facts_of
from rmqtool.repair.in_place import begin_marker, end_marker
from rmqtool.repair.journal import Phase, State
from rmqtool.repair.marker import find_marker
from rmqtool.repair.undo_apply import UndoApply
from rmqtool.repair.undo_plan import Judge, Way, with_hindered
from rmqtool.store.access import in_words
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.repair.journal import Journal
    from rmqtool.repair.undo_plan import Step
    from rmqtool.store.holding import Held


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo would do. steps: for every path that is not as it was, in the order of the plan.

    between: the store was left between two states. directories: modification times to restore, by location.
    """

    directory: str
    journal: Journal
    state: State
    between: bool
    steps: tuple[Step, ...]
    directories: dict[str, int]

    @property
    def changed(self) -> tuple[Step, ...]:
        """What was changed since the apply."""
        return tuple(one for one in self.steps if one.changed is not None)

    @property
    def nothing(self) -> bool:
        """The store is as it was before the apply, as far as the journal goes."""
        settled = self.state.phase in {Phase.DONE, Phase.UNDONE}
        return settled and not self.steps and not self.between


def plan_undo(given: str, *, follow_links: bool = False) -> UndoPlan:
    """Reads a journal and judges the store that it belongs to; nothing is touched.

    follow_links: what it names may lie behind links out of the store. Raises `UsageError` when there is no
    journal, it is not to be trusted or its store is gone, `NewerFormatError`, `StoreIOError`.
    """
    directory, journal, state = read_journal(given, follow_links=follow_links)
    if not os.path.isdir(journal.store):
        raise UsageError(f"{escape_name(journal.store)}, the store of this journal, is not there")
    marker = find_marker(journal.store)
    between = marker is not None and state.phase not in {Phase.APPLIED, Phase.DONE}
    if marker is not None and not marker.belongs_to(journal.journal_id):
        other = f" ({escape_name(marker.journal)})" if marker.journal else ""
        raise UsageError(
            f"{escape_name(journal.store)} is in the middle of another apply{other}: undo that first"
        )
    if state.phase is Phase.UNDONE and marker is None:
        return UndoPlan(directory, journal, state, between=False, steps=(), directories={})
    judge = Judge(directory, state.after, between=between, skipped=state.skipped)
    steps = [step for entry in journal.entries for step in judge.steps(entry)]
    if not between:
        steps = with_hindered(steps)
    return UndoPlan(
        directory,
        journal,
        state,
        between or marker is not None,
        tuple(steps),
        _directory_times(journal, state, between=between or marker is not None),
    )


def _directory_times(journal: Journal, state: State, *, between: bool) -> dict[str, int]:
    """Directories in which nobody else made or removed a name since, with the times that they had."""
    found = {}
    markers = (journal.marker_directory, *journal.further_markers)
    unfinished = {*markers, journal.store} if state.phase is not Phase.DONE else set()
    for location, facts in journal.directories.items():
        now = facts_of(location, follow=True)
        if (
            between
            or location in unfinished
            or not now.exists
            or now.mtime_ns == state.directories.get(location)
        ):
            found[location] = facts.mtime_ns
    if state.phase is Phase.UNDOING:
        found.update({one: state.directories[one] for one in markers})
    return found


def undo(plan: UndoPlan, held: Held, *, partial: bool = False, disk: Disk | None = None) -> None:
    """Carries out an undo that was planned while `held` was held.

    partial: what changed since stays, the rest is restored. Raises `PlanRefusedError` when something changed
    and `partial` is not given, `StoreIOError` when the disk refuses: the same undo again goes on then.
    """
    disk = disk or Disk()
    if plan.nothing:
        return
    if plan.changed and not partial and not plan.state.skipped:
        first = plan.changed[0]
        raise PlanRefusedError(
            f"{len(plan.changed)} of {len(plan.steps)} parts changed since, the first {first.key}: "
            f"{first.changed}; --partial restores the rest"
        )
    journal = plan.journal
    if journal.made_lock:
        held.made = True
        held.root_mtime_ns = journal.directories[journal.store].mtime_ns
    demand_saved(plan)
    try:
        _restore(plan, disk)
    except OSError as error:
        raise StoreIOError(
            f"{in_words(error)}; the same undo again continues, no broker starts on the store before"
        ) from error


def _restore(plan: UndoPlan, disk: Disk) -> None:
    journal, state = plan.journal, plan.state
    skipped = tuple(one.key for one in plan.changed)
    markers = (journal.marker_directory, *journal.further_markers)
    now = {one: facts_of(one, follow=True).mtime_ns for one in markers}
    times = {**state.directories, **{one: plan.directories.get(one, now[one]) for one in markers}}
    undoing = State(phase=Phase.UNDOING, after=state.after, directories=times, skipped=skipped)
    write_state(disk, plan.directory, undoing)
    marker = begin_marker(disk, journal, plan.directory)
    putting = UndoApply(disk, plan.directory)
    chosen = [one for one in plan.steps if one.changed is None]
    putting.run(journal, chosen, {one.entry.path for one in plan.changed})
    for location, mtime_ns in plan.directories.items():
        if os.path.isdir(location):
            disk.set_mtime(location, mtime_ns)
            disk.sync_directory(location)
    end_marker(disk, journal, marker, times)
    write_state(disk, plan.directory, undoing.model_copy(update={"phase": Phase.UNDONE}))


def demand_saved(plan: UndoPlan) -> None:
    """Raises `StoreIOError` when bytes to restore are not those that were saved; reads all of them."""
    for step in plan.steps:
        if step.changed is not None:
            continue
        entry = step.entry
        saved, wanted = file_path(plan.directory, entry.path), entry.sha256
        if step.way is Way.BYTES and step.position is not None:
            saved, wanted = piece_path(plan.directory, entry.path, step.position), step.sha256
        elif step.way is not Way.PUT_BACK or wanted is None or not os.path.lexists(saved):
            continue
        if sha256_of_file(saved, like=wanted) != wanted:
            raise StoreIOError(f"{escape_name(saved)} is not what was saved there; nothing was changed")
