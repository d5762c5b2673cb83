"""Index files as rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rmqtool.scan.events import Gap
from rmqtool.scan.file_rows import RowBatch, cut_row, event_row, readable, short_row, unreadable_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.file_rows import FileAccess, Row
    from rmqtool.store.files import StoreFile
    from rmqtool.store.patched import ZeroFilledSource


def read_index(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """Header, slots and items of an index file."""
    with reader.open(file) as source:
        yield from _index_parts(reader, file, source)
        yield from unreadable_rows(file, source)


def _index_parts(reader: FileAccess, file: StoreFile, source: ZeroFilledSource) -> Iterator[RowBatch | Row]:
    """Header, slots and items; without a header that can be read nobody knows how many there are."""
    from formats.index import FIRST_ITEM, Header, file_size
    from formats.primitives import sizeof
    from rmqtool.scan.index import header_problems, next_item, read_header
    from rmqtool.store.holes import is_zero
    from rmqtool.store.index_geometry import index_geometry

    geometry = index_geometry(file, reader.store.config)
    header = read_header(source)
    if source.unreadable:
        return
    if header is None:
        yield short_row(file, 40)
        return
    row: Row = {
        "type": "index_header",
        "path": file.display_path,
        **asdict(header),
        "slots": geometry.slots,
        "items": geometry.items,
        "geometry_source": geometry.source.value,
    }
    if geometry.slots is None or geometry.items is None:
        yield row
        if header.index_count > FIRST_ITEM or not is_zero(source, sizeof(Header)):
            about = {"path": file.display_path, "kind": file.kind.value, "reason": geometry.detail}
            yield {"type": "undecoded", **about}
        return
    slots, items = geometry.slots, geometry.items
    used = next_item(source, header.index_count, slots, items)
    problems = header_problems(source, header, slots, items, used)
    yield row | ({"problems": problems} if problems else {})
    end = max(used, header.index_count if header.index_count <= items else 0)
    yield from _slots_and_items(file, source, slots, end)
    if source.size != file_size(slots, items):
        yield cut_row(file, source.size, file_size(slots, items))


def _slots_and_items(
    file: StoreFile, source: ZeroFilledSource, slots: int, end: int
) -> Iterator[RowBatch | Row]:
    """All slots, and the items in front of number `end`, without those that cannot be read."""
    import numpy as np

    from formats.index import item_position, slot_position
    from rmqtool.scan.index import ITEM, SLOT
    from rmqtool.scan.index_batches import read_items, read_slots

    for batch in read_slots(source, file.display_path, slots):
        places = slot_position(0) + batch["slot"].to_numpy().astype(np.int64) * SLOT.itemsize
        yield RowBatch("index_slot", readable(batch, places, SLOT.itemsize, source))
    width = ITEM.itemsize
    for batch in read_items(source, file.display_path, slots, end):
        if isinstance(batch, Gap):
            yield event_row("gap", file.display_path, batch)
            continue
        places = item_position(0, slots) + batch["number"].to_numpy().astype(np.int64) * width
        yield RowBatch("index_item", readable(batch, places, width, source))
