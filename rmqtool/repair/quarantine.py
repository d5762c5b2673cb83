"""What a copy does not have any more, kept beside it: files that left and bytes that were changed or cut.

`files/PATH` is a whole file, `ranges/PATH@POSITION` bytes of one from that position on, `plan.json` says why.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.repair.backup import file_path, piece_path
from rmqtool.repair.copying import copy_file
from rmqtool.repair.facts import facts_of
from rmqtool.repair.places import InStore, Roots, lies_in
from rmqtool.repair.plan import Action
from rmqtool.repair.regions import edits_by_file, make_parents, regions_of, save_region, set_aside
from rmqtool.repair.written import write_document
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.repair.disk import Disk
    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


def check_beside(store: Store, directory: str, option: str) -> None:
    """Raises `UsageError` unless `directory` is new or empty and outside the store."""
    shown = escape_name(directory)
    if lies_in(directory, store):
        raise UsageError(f"{option} {shown}: lies inside the store")
    if os.path.lexists(directory) and (not os.path.isdir(directory) or os.listdir(directory)):
        raise UsageError(f"{option} {shown}: exists and is not an empty directory")


class Evidence:
    """What a copy loses of a store by a plan; false when that is nothing.

    follow_links: also what lies behind links that lead out of the store.
    """

    def __init__(self, store: Store, planned: Planned, *, follow_links: bool = False) -> None:
        self._places = places = InStore(store)
        self._plan = plan = planned.plan
        roots = None if follow_links else Roots(store)

        def is_ours(path: str) -> bool:
            return roots is None or roots.have(places.content_of(path))

        self._gone = [
            one.path
            for one in plan.changes
            if one.action in {Action.REMOVE, Action.PUT}
            and facts_of(places.of(one.path), follow=True).kind == "file"
            and is_ours(one.path)
        ]
        self._parts = [one for one in set_aside(plan.changes) if is_ours(one[0])]
        for path, changes in edits_by_file(plan.changes).items():
            size = facts_of(places.of(path), follow=True).size
            self._parts += [(path, one) for one in regions_of(changes, size) if one.before]
        self._any = bool(self._gone or self._parts or edits_by_file(plan.changes))

    def __bool__(self) -> bool:
        return self._any

    def keep(self, disk: Disk, directory: str) -> None:
        """Fills an empty directory, `Folder.here`. Raises `OSError`, `StoreIOError`."""
        for path in self._gone:
            target = file_path(directory, path)
            make_parents(disk, target, directory)
            copy_file(disk, self._places.content_of(path), target)
        for path, region in self._parts:
            target = piece_path(directory, path, region.position)
            make_parents(disk, target, directory)
            save_region(disk, self._places.content_of(path), region, target)
        for folder, _, _ in os.walk(directory, topdown=False):
            disk.sync_directory(folder)
        plan = self._plan.model_dump(mode="json", by_alias=True)
        write_document(disk, os.path.join(directory, "plan.json"), plan)
