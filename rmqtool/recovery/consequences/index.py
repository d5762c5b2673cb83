"""Which messages queries by key will miss, or return twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from formats.index import FIRST_ITEM, Header
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.recovery.consequences.consequence import Consequence, consequence
from rmqtool.store.index_solver import ITEM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.recovery.consequences.finding_context import FindingContext
    from rmqtool.store.bytes import ByteSource

_OFFSET_IN_ITEM = 4


def index(scene: FindingContext) -> Iterator[Consequence]:
    """Files that are dropped, and what the newest that stays says."""
    start = scene.start
    if start.plan is None or not start.settings.index_enabled:
        return
    dropped = start.index.deleted
    first = start.plan.start_segment
    if dropped:
        yield consequence("DR-INDEX-DROPPED", *dropped, count=len(dropped), offset=first)
        missing = [(path, _before(scene, path, first or 0)) for path in dropped]
        paths = [path for path, count in missing if count != 0]
        if paths:
            known = [count for _, count in missing if count is not None]
            items = sum(known) if len(known) == len(missing) else None
            shown = "number unknown" if items is None else items
            found = consequence("DR-INDEX-ITEMS-MISSING", *paths, items=shown, offset=first)
            yield replace(found, facts={"items": items, "offset": first})
    yield from _newest(scene)


def _newest(scene: FindingContext) -> Iterator[Consequence]:
    start = scene.start
    if not start.index.kept:
        return
    newest = start.index.kept[-1]
    header = _header(scene, newest)
    if header is None:
        return
    reach, end = int(header.end_physical_offset), start.log.max_offset
    covered = start.dispatcher.covered
    if reach > end:
        yield consequence("DR-NOT-INDEXED", newest, offset=reach, end=end)
    elif covered is not None and covered[0] <= reach <= covered[1] and int(header.index_count) > FIRST_ITEM:
        yield consequence("DR-INDEX-DOUBLE", newest, offset=reach)


def _header(scene: FindingContext, path: str) -> Any:
    file = scene.start.store.file(path)
    if file is None or file.size < sizeof(Header):
        return None
    try:
        with file.open("pread") as source:
            return Header.parse(source.window(0, sizeof(Header)).tobytes())
    except RmqtoolError:
        return None


def _before(scene: FindingContext, path: str, offset: int) -> int | None:
    """Items of a file for records of the log before `offset`; they are in the order of the log.

    None when the file has some and its geometry is not known.
    """
    store, file = scene.start.store, scene.start.store.file(path)
    header = _header(scene, path)
    geometry = store.index_geometry.get(path)
    floor = max(scene.start.log.min_offset, 0)
    if file is None or header is None or not floor <= int(header.begin_physical_offset) < offset:
        return 0
    if geometry is None or geometry.slots is None:
        return None
    first = geometry.item_position(0)
    count = min(int(header.index_count), (file.size - first) // ITEM)
    with file.open("pread") as source:
        return _position(source, first, count, offset) - _position(source, first, count, floor)


def _position(source: ByteSource, first: int, count: int, offset: int) -> int:
    """Number of the first item for a record at or behind `offset`."""
    low, high = FIRST_ITEM, max(count, FIRST_ITEM)
    while low < high:
        middle = (low + high) // 2
        raw = source.window(first + middle * ITEM + _OFFSET_IN_ITEM, 8).tobytes()
        if int.from_bytes(raw, "big", signed=True) < offset:
            low = middle + 1
        else:
            high = middle
    return low
