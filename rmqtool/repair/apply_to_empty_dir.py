"""Applying a plan to an empty directory: what it puts, alone, without a copy of the store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.disk import Disk
from rmqtool.repair.editing import Editor, check_order
from rmqtool.repair.facts import facts_of
from rmqtool.repair.in_place import same_inputs
from rmqtool.repair.output import Output
from rmqtool.repair.places import InCopy, InStore
from rmqtool.repair.room import demand_room, written_bytes
from rmqtool.repair.to_copy import check_output
from rmqtool.store.access import in_words
from rmqtool.store.holding import refuse_if_held
from rmqtool.store.modes import readers_of
from rmqtool.store.writing import way_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


def apply_to_empty_dir(
    store: Store,
    planned: Planned,
    output: str,
    *,
    disk: Disk | None = None,
    advance: Callable[[int], object] | None = None,
) -> None:
    """Carries out a plan that only makes directories and puts files in `output`, new or empty.

    Owner, group and mode are those of the store's files, or of its root. When it fails, what was written is
    removed. Raises `UsageError` for another `output`, `LockedError`, `PlanRefusedError` when the store was
    changed meanwhile, `StoreIOError`.
    """
    disk = disk or Disk()
    check_output(store, output)
    check_order(planned.edits)
    refuse_if_held(store.root)
    with way_to(output, "--output")[0] as place:
        demand_room(place.here, written_bytes(planned.edits, os.fstat(place.descriptor).st_dev))
    made = Output(disk, output, "--output")
    try:
        with made:
            original = InStore(store)
            editor = Editor(
                disk,
                InCopy(store, made.here),
                lambda path: facts_of(original.of(path), follow=True),
                facts_of(os.path.realpath(store.root)),
                advance,
                readers_of(store),
            )
            editor.run(planned.edits)
            editor.finish()
            same_inputs(store, planned)
            made.set_owner_and_mode()
            disk.sync_directory(made.here)
            made.sync_name()
    except (OSError, StoreIOError) as error:
        raise StoreIOError(f"{in_words(error)}; the store was not touched, {made.left}") from error
