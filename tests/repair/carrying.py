"""Apply and undo as the commands do them."""

from __future__ import annotations

from pathlib import Path

from rmqtool.repair.disk import Disk
from rmqtool.repair.in_place import apply_in_place
from rmqtool.repair.interrupted import bring_back
from rmqtool.repair.undo import plan_undo, undo
from rmqtool.store.holding import acquire_store_lock
from rmqtool.store.layout import Store
from tests.repair.smallstore import planner


def apply(root: Path, backup: Path, disk: Disk | None = None, *, follow_links: bool = False) -> None:
    """As the command does it: what was stopped is brought back first."""
    disk = disk or Disk()
    with acquire_store_lock(root) as held:
        bring_back(root, str(backup), held, disk, follow_links=follow_links)
        store = Store.open(root)
        if not (backup / "journal.json").exists():
            planned = planner(store, {}, "")
            apply_in_place(store, planned, str(backup), held, disk=disk, follow_links=follow_links)


def put_back(
    root: Path, backup: Path, disk: Disk | None = None, *, partial: bool = False, follow_links: bool = False
) -> None:
    with acquire_store_lock(root) as held:
        undo(plan_undo(str(backup), follow_links=follow_links), held, partial=partial, disk=disk)
