"""A log pass with nothing but the index check, and small changes to index files."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from formats.index import Header, Item, item_position
from formats.primitives import offset_of, sizeof
from rmqtool.check.findings import Finding
from rmqtool.check.index import IndexCheck, LogRange
from rmqtool.check.index_keys import keys_of
from rmqtool.check.ranges import Ranges
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Gap, Records
from rmqtool.scan.fields import Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.config import StoreConfig
from rmqtool.store.layout import Store

SLOTS = 100
"""of the stores that Java's message store was driven directly for"""


def check_index(
    root: Path, config: StoreConfig | None = None, kernels: ModuleType | None = None, batch_rows: int = 16_384
) -> tuple[list[Finding], IndexCheck]:
    store = Store.open(root, config=config)
    kernels = kernels or choose_kernels(0)
    check = IndexCheck(store, kernels)
    found: list[Finding] = []
    damaged = Ranges()
    end = 0
    for segment in store.segments:
        active = store.segments.is_active(segment)
        with segment.open() as source:
            scan = SegmentScan(source, segment.base, active=active, kernels=kernels, batch_rows=batch_rows)
            for event in scan:
                if isinstance(event, Records):
                    found += check.match(keys_of(kernels.hashes, event, segment.base))
                    last = event.rows[-1]
                    end = segment.base + int(last[Field.POSITION] + last[Field.STORE_SIZE])
                elif isinstance(event, Gap):
                    start = segment.base + event.position
                    damaged.add(start, start + event.length, "CL-MAGIC")
    log = None
    if len(store.segments) and not len(store.dledger_segments):
        log = LogRange(store.segments.first_offset, end)
    found += check.finish(log, damaged)
    return found, check


def index_paths(root: Path) -> list[Path]:
    return sorted((root / "index").iterdir())


def item_at(number: int, part: str = "key_hash") -> int:
    return item_position(number, SLOTS) + offset_of(Item, part)


def header_at(part: str) -> int:
    return offset_of(Header, part)


def change(path: Path, position: int, value: int, width: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[position : position + width] = value.to_bytes(width, "big", signed=True)
    path.write_bytes(raw)


def item_of(path: Path, number: int) -> dict[str, int]:
    at = item_position(number, SLOTS)
    parsed = Item.parse(path.read_bytes()[at : at + sizeof(Item)])
    return {name: int(parsed[name]) for name in ("key_hash", "physical_offset", "time_diff", "prev")}
