"""What a copy does not have any more, kept beside it: files that left and bytes that were changed or cut.

`files/PATH` is a whole file, `ranges/PATH@POSITION` bytes of one from that position on, `plan.json` says why.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.repair.backup import file_path, piece_path
from rmqtool.repair.copying import copy_file
from rmqtool.repair.disk import resolved
from rmqtool.repair.facts import facts_of, give_owner
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
        raise UsageError(f"{option} {shown}: exists and is no empty directory")


def keep_evidence(
    disk: Disk, store: Store, planned: Planned, directory: str, *, follow_links: bool = False
) -> None:
    """Fills `directory`, new or empty, from the store; nothing is made when nothing is lost to the copy.

    follow_links: from behind links that lead out of the store, too.
    """
    places, directory = InStore(store), resolved(directory)
    roots = None if follow_links else Roots(store)

    def is_ours(path: str) -> bool:
        return roots is None or roots.have(os.path.realpath(places.of(path)))

    plan = planned.plan
    gone = [
        one.path
        for one in plan.changes
        if one.action in {Action.REMOVE, Action.PUT}
        and facts_of(places.of(one.path), follow=True).kind == "file"
        and is_ours(one.path)
    ]
    edited = edits_by_file(plan.changes)
    aside = [one for one in set_aside(plan.changes) if is_ours(one[0])]
    if not gone and not edited and not aside:
        return
    if not os.path.isdir(directory):
        disk.make_directory(directory)
    for path in gone:
        location, target = os.path.realpath(places.of(path)), file_path(directory, path)
        make_parents(disk, target, directory)
        copy_file(disk, location, target)
        facts = facts_of(location, follow=True)
        give_owner(disk, target, facts)
        disk.set_mtime(target, facts.mtime_ns)
    for path, changes in edited.items():
        size = facts_of(places.of(path), follow=True).size
        aside += [(path, one) for one in regions_of(changes, size) if one.before]
    for path, region in aside:
        target = piece_path(directory, path, region.position)
        make_parents(disk, target, directory)
        save_region(disk, places.of(path), region, target)
    for folder, _, _ in os.walk(directory, topdown=False):
        disk.sync_directory(folder)
    write_document(disk, os.path.join(directory, "plan.json"), plan.model_dump(mode="json", by_alias=True))
