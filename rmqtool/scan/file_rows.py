"""What rows about files have in common: batches, gaps and tails, files that are short, bytes not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rmqtool.scan.events import Gap, Tail
from rmqtool.store.coverage import Incomplete, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.patched import ZeroFilledSource

    Ints = npt.NDArray[np.int64]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Many rows of one type as a batch."""

    type: str
    batch: pa.RecordBatch


class FileAccess(Protocol):
    """What reading one file asks of the reader of a store (`files.FileReader`)."""

    store: Store
    access: Access

    def open(self, file: StoreFile) -> ZeroFilledSource:
        """The bytes of a file, copied, with zeros where they cannot be read."""


def event_row(kind: str, path: str, event: Gap | Tail) -> Row:
    """A gap or a tail."""
    row: Row = {"type": kind, "path": path, "position": event.position, "length": event.length}
    if isinstance(event, Tail):
        return row | {"content": event.content.value}
    return row | {"reason": event.reason.name.lower(), "expected": event.expected, "found": event.found}


def unreadable_rows(file: StoreFile, source: ZeroFilledSource) -> Iterator[Row]:
    """The ranges of a file that could not be read, when it has been read to its end."""
    source.notice_cut()
    for bad in source.unreadable:
        row = {"type": "gap", "path": file.display_path, "position": bad.start, "length": bad.length}
        yield row | {"reason": "unreadable", "error": bad.reason}


def not_covered(gap: Row) -> Row:
    """A row of a gap as one of `not_covered`."""
    if gap["reason"] == "unreadable":
        return unreadable(gap["path"], gap["error"], gap["position"], gap["length"])
    place = {name: gap[name] for name in ("path", "position", "length")}
    return place | {"reason": Incomplete.DAMAGE.value}


def readable(batch: pa.RecordBatch, starts: Ints, width: int, source: ZeroFilledSource) -> pa.RecordBatch:
    """The rows of a batch whose bytes, `width` from `starts` on, could be read."""
    import numpy as np
    import pyarrow as pa

    lost = np.zeros(len(starts), bool)
    for bad in source.unreadable_in(int(starts[0]), int(starts[-1]) + width) if len(starts) else ():
        lost |= (starts < bad.end) & (starts + width > bad.start)
    return batch.filter(pa.array(~lost)) if lost.any() else batch


def cut_row(file: StoreFile, size: int, wanted: int) -> Row:
    """A file that ends early, or goes on behind its end."""
    at = min(size, wanted)
    place = {"path": file.display_path, "position": at, "length": abs(size - wanted)}
    reported = {"reason": "short" if size < wanted else "excess", "expected": wanted, "found": size}
    return {"type": "gap", **place, **reported}


def short_row(file: StoreFile, wanted: int) -> Row:
    """A file that has not even what it must begin with."""
    return {
        "type": "gap",
        "path": file.display_path,
        "position": 0,
        "length": file.size,
        "reason": "short",
        "expected": wanted,
        "found": file.size,
    }


def undecodable(file: StoreFile, raw: bytes, reason: str) -> Row:
    """A file whose content is none of its kind."""
    shown = raw[:64].hex()
    return {
        "type": "gap",
        "path": file.display_path,
        "position": 0,
        "length": file.size,
        "reason": reason,
        "expected": None,
        "found": shown,
    }
