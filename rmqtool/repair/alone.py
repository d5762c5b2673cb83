"""Applying a plan to an empty directory: what it puts, alone, without a copy of the store."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.disk import Disk
from rmqtool.repair.editing import Editor, check_order
from rmqtool.repair.facts import facts_of
from rmqtool.repair.places import InCopy, InStore
from rmqtool.repair.regions import make_parents
from rmqtool.repair.room import demand_room, written_bytes
from rmqtool.repair.to_copy import check_output
from rmqtool.store.holding import refuse_if_held
from rmqtool.store.modes import readers_of
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


def apply_alone(
    store: Store,
    planned: Planned,
    output: str,
    *,
    disk: Disk | None = None,
    advance: Callable[[int], object] | None = None,
) -> None:
    """Carries out a plan that only makes directories and puts files in `output`, new or empty.

    Owner, group and mode are those of the store's files, or of its root. When it fails, what was written is
    removed. Raises `UsageError` for another `output`, `LockedError`, `StoreIOError`.
    """
    disk = disk or Disk()
    check_output(store, output)
    check_order(planned.edits)
    refuse_if_held(store.root)
    target = os.path.realpath(output)
    existed = os.path.isdir(target)
    try:
        make_parents(disk, os.path.join(target, "store"), mode=0o777)
        demand_room(target, written_bytes(planned.edits, os.stat(target).st_dev))
        original = InStore(store)
        editor = Editor(
            disk,
            InCopy(store, target),
            lambda path: facts_of(original.of(path), follow=True),
            facts_of(os.path.realpath(store.root)),
            advance,
            readers_of(store),
        )
        editor.run(planned.edits)
        editor.finish()
        disk.sync_directory(os.path.dirname(target))
    except BaseException as error:
        _clear(target, keep=existed)
        if isinstance(error, OSError):
            where = f"{escape_name(os.fsdecode(error.filename))}: " if error.filename else ""
            raise StoreIOError(
                f"{where}{error.strerror}; nothing was left in {escape_name(output)}"
            ) from error
        raise


def _clear(target: str, *, keep: bool) -> None:
    if not keep:
        shutil.rmtree(target, ignore_errors=True)
        return
    for name in os.listdir(target):
        shutil.rmtree(os.path.join(target, name), ignore_errors=True)
