"""Sizes of files that nothing tells, neither a setting nor a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.repair.places import further_roots
from rmqtool.repair.plan import Action
from rmqtool.store.geometry import Source
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.repair.plan import Edit
    from rmqtool.store.layout import Store

_SETTINGS = {
    FileKind.CONSUMEQUEUE: "mappedFileSizeConsumeQueue",
    FileKind.BATCHCONSUMEQUEUE: "mapperFileSizeBatchConsumeQueue",
}


def assumed_sizes(store: Store, edits: Iterable[Edit]) -> Iterator[str]:
    """A note for each kind of queue whose files these edits make as long as a broker does by default.

    One, too, for segments that are changed where it is a guess how long they were before they were cut. A
    broker with another setting refuses all of these (`MappedFileQueue#doLoad`).
    """
    if store.config is not None:
        return
    edits = list(edits)
    segments, log = store.sizes[FileKind.COMMITLOG], {"commitlog", *further_roots(store)}
    if segments.source is Source.AMBIGUOUS and any(_of_log(one, log) for one in edits):
        yield (
            f"segments get {segments.value:,} bytes, a guess, as their files were cut short or do not agree: "
            "with another mappedFileSizeCommitLog a broker refuses to start; --store-config says it"
        )
    made = {edit.change.path.partition("/")[0] for edit in edits if edit.change.action is Action.PUT}
    for kind, setting in _SETTINGS.items():
        size = store.sizes.get(kind)
        if kind.value in made and size is not None and size.source is Source.DEFAULT:
            yield (
                f"files of {kind.value} get {size.value:,} bytes, the default of {setting}: nothing here "
                "tells the broker's own, and with another it refuses to start; --store-config says it"
            )


def _of_log(edit: Edit, directories: set[str]) -> bool:
    return edit.change.path.rpartition("/")[0] in directories
