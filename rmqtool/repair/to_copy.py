"""Applying a plan to a copy of the store: `--output`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError, StoreIOError, UsageError
from rmqtool.repair.disk import Disk
from rmqtool.repair.editing import Editor, check_order
from rmqtool.repair.facts import facts_of, give_owner
from rmqtool.repair.in_place import refuse_blocked
from rmqtool.repair.marker import NAME, place_marker, refuse_without_place, remove_marker
from rmqtool.repair.output import Output
from rmqtool.repair.places import InCopy, InStore, is_within, lies_in
from rmqtool.repair.plan import Action
from rmqtool.repair.quarantine import Evidence
from rmqtool.repair.room import demand_room, existing_above, shares_blocks, written_bytes
from rmqtool.repair.tree import copy_tree, set_directory_facts, tree_of
from rmqtool.store.access import in_words
from rmqtool.store.holding import refuse_if_held
from rmqtool.store.modes import readers_of
from rmqtool.store.names import escape_name, unescape_name
from rmqtool.store.writing import way_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.repair.plan import Edit, Planned
    from rmqtool.repair.tree import Tree
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """A copy that may be made.

    needed: bytes on the file system of `target`; shares: blocks are shared with the store, so that only
    what changes takes room.
    """

    target: str
    tree: Tree
    needed: int
    shares: bool
    follow_links: bool


def check_output(store: Store, output: str) -> None:
    """Raises `UsageError` unless `output` is new or an empty directory outside the store."""
    shown = escape_name(output)
    way_to(output, "--output")[0].close()
    if lies_in(output, store) or is_within(store.root, output):
        raise UsageError(f"--output {shown}: lies in the store, or around it")
    if not os.path.lexists(output):
        return
    if not os.path.isdir(output):
        raise UsageError(f"--output {shown}: exists and is not a directory")
    if os.listdir(output):
        raise UsageError(f"--output {shown}: exists and is not empty")


def prepare_copy(store: Store, planned: Planned, output: str, *, follow_links: bool = False) -> CopyPlan:
    """What the copy takes.

    Raises `UsageError` for an `output` that is not new or empty, and when what the plan changes is left out
    of the copy since a link leads out of the store to it and `follow_links` is not given; `PlanRefusedError`
    where two roots of the log have a file of one name.
    """
    check_output(store, output)
    refuse_blocked(store, planned)
    away = {Action.PUT, Action.REMOVE}
    without = {one.path for one in planned.plan.changes if one.action in away}
    tree = tree_of(store, without, follow_links=follow_links)
    _refuse_left_out(tree, planned)
    _refuse_twins(tree)
    parent = existing_above(output)
    sample = next((one.location for one in tree.files if one.size), None)
    shares = sample is not None and os.access(parent, os.W_OK) and shares_blocks(sample, parent)
    needed = written_bytes(planned.edits, os.stat(parent).st_dev) + (0 if shares else tree.data_bytes)
    return CopyPlan(os.path.realpath(output), tree, needed, shares, follow_links)


def _refuse_left_out(tree: Tree, planned: Planned) -> None:
    left_out = frozenset(tree.left_out)
    for change in planned.plan.changes if left_out else ():
        if change.action is Action.REMOVE_DIRECTORY and unescape_name(change.path) in left_out:
            continue
        parts = unescape_name(change.path).split("/")
        if any("/".join(parts[:count]) in left_out for count in range(1, len(parts) + 1)):
            raise UsageError(
                f"{change.path} leads out of the store by a link and is not copied without --follow-links, "
                "so it cannot be changed in a copy"
            )


def _refuse_twins(tree: Tree) -> None:
    seen: dict[str, str] = {}
    for one in tree.files:
        other = seen.setdefault(one.path, one.location)
        if other != one.location:
            raise PlanRefusedError(
                f"{escape_name(other)} and {escape_name(one.location)} have one place in a copy, {one.path}: "
                "rmqtool recover keeps what is intact in both; --in-place leaves them where they are"
            )


def apply_to_copy(
    store: Store,
    planned: Planned,
    copy: CopyPlan,
    *,
    quarantine: str | None = None,
    disk: Disk | None = None,
    advance: Callable[[int], object] | None = None,
) -> None:
    """Copies the store and carries out the plan there; the store itself is only read.

    quarantine: a directory, new or empty, that gets every byte of the store that the copy does not have.
    While it is made, the copy has a marker that brokers refuse. When it fails, what was written is removed.
    Raises `LockedError`, `PlanRefusedError` (the store changed meanwhile), `StoreIOError`.
    """
    disk = disk or Disk()
    check_order(planned.edits)
    refuse_if_held(store.root)
    refuse_without_place(os.fspath(store.root))
    demand_room(copy.target, copy.needed)
    output = Output(disk, copy.target, "--output")
    try:
        with ExitStack() as stack:
            stack.enter_context(output)
            _make(store, planned, copy, output.here, disk, advance)
            if quarantine is not None:
                evidence = Evidence(store, planned, follow_links=copy.follow_links)
                if evidence:
                    beside = stack.enter_context(Output(disk, quarantine, "the directory beside --output"))
                    evidence.keep(disk, beside.here)
            _still_the_same(store, planned)
            refuse_if_held(store.root)
            # inner directories first: none is its owner's before all is in it, and the root is the last
            set_directory_facts(disk, [one for one in copy.tree.directories if one[1]], output.here)
            disk.sync_directory(output.here)
            remove_marker(disk, os.path.join(output.here, "commitlog", NAME))
            _finish_directories(store, copy, output.here, disk)
            output.sync_name()
    except (OSError, StoreIOError) as error:
        raise StoreIOError(f"{in_words(error)}; the store was not touched, {output.left}") from error


def _make(
    store: Store,
    planned: Planned,
    copy: CopyPlan,
    target: str,
    disk: Disk,
    advance: Callable[[int], object] | None,
) -> None:
    commitlog = os.path.join(target, "commitlog")
    made = disk.make_directory(commitlog)
    place_marker(disk, commitlog, None, None)
    copy_tree(disk, copy.tree, target, advance)
    _still_the_same(store, planned)
    original, root = InStore(store), facts_of(os.path.realpath(store.root))
    if not os.path.isdir(original.of("commitlog")):
        with disk.opened(commitlog, made) as descriptor:
            give_owner(disk, descriptor, root, commitlog)
    places = InCopy(store, target)
    editor = Editor(
        disk,
        places,
        lambda path: facts_of(original.of(path), follow=True),
        root,
        advance,
        readers_of(store),
    )
    editor.run(_edits_in_copy(planned, copy.tree, places, target))
    editor.finish()


def _edits_in_copy(planned: Planned, tree: Tree, places: InCopy, target: str) -> list[Edit]:
    """The edits but removals of what was not copied.

    The place of a file may be that of another one in the copy, from another root of the log.
    """
    left_out = frozenset(tree.left_out)
    taken = {os.path.join(target, one.path) for one in tree.files if one.location}
    taken |= {places.of(one.path) for one in planned.plan.changes if one.action is Action.PUT}
    return [
        one
        for one in planned.edits
        if unescape_name(one.change.path) not in left_out
        and (one.change.action is not Action.REMOVE or places.of(one.change.path) not in taken)
    ]


def _finish_directories(store: Store, copy: CopyPlan, target: str, disk: Disk) -> None:
    commitlog = os.path.join(target, "commitlog")
    if not os.path.isdir(InStore(store).of("commitlog")) and not os.listdir(commitlog):
        disk.remove_directory(commitlog)
    # the marker's going has changed their times
    set_directory_facts(disk, [one for one in copy.tree.directories if one[1] in {"", "commitlog"}], target)


def _still_the_same(store: Store, planned: Planned) -> None:
    """The files that the plan rests on have not been written while they were copied."""
    known = {one.display_path: one for one in store.files}
    for one in planned.plan.inputs:
        file = known.get(one.path)
        found = facts_of(file.location, follow=True) if file is not None else None
        if found is None or (found.size, found.mtime_ns) != (one.size, one.mtime_ns):
            raise PlanRefusedError(f"{one.path} was changed while the store was copied: plan again")
