"""What lies among mapped files and makes a broker refuse: files without a number, directories."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rmqtool.broker.load import timers_in_use
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import traits_of
from rmqtool.repair.keep.away import directory_away
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name, parse_base_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.store.layout import Store
    from rmqtool.store.release import Release


def stray_edits(store: Store, release: str, guessed: Sequence[Release]) -> Iterator[Edit]:
    """Removals among the files of queues and timers, and of directories among segments.

    `MappedFileQueue#doLoad` loads them all. Among the timers only where the release has some.

    guessed: what store and result say of the release that wrote them, nothing where somebody named it.
    Directories stay where that passes over them, and no other may have written the store: an older one may
    start. Those with the name of a mapped file go all the same: no broker can make that file.
    """
    mapped = {
        one.path
        for one in store.directories
        if one.queue_id is not None and one.path.startswith((*_QUEUES, f"{FileKind.CONSUMEQUEUE_EXT}/"))
    }
    traits = traits_of(release)
    if timers_in_use(traits, settings_of(store)):
        mapped.add(FileKind.TIMERLOG.value)
    for file in store.of_kind(FileKind.UNKNOWN):
        if file.path.rpartition("/")[0] in mapped and file.regular:
            message = (
                f"{file.display_path} is no file of a broker: it refuses a name that is not a number here"
            )
            yield Edit(
                Change(action=Action.REMOVE, path=file.display_path, why="stray-file", message=message)
            )
    mixed = any(one.mixed for one in guessed)
    possible = {release, *chain.from_iterable(one.releases for one in guessed)}
    skipped = not mixed and all(traits_of(one).skips_directories for one in possible)
    for one in store.directories:
        parent, _, name = one.path.rpartition("/")
        in_place = parse_base_offset(name) is not None
        if (parent == "commitlog" or parent in mapped) and (in_place or not skipped):
            what = "no broker can make the file of this name" if in_place else "brokers refuse it"
            message = f"{escape_name(one.path)}: a directory among mapped files, {what}"
            yield from directory_away(store, one.path, "stray-directory", message)


_QUEUES = (f"{FileKind.CONSUMEQUEUE}/", f"{FileKind.BATCHCONSUMEQUEUE}/")
