"""What tells that a log is still the one that was read up to some offset."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmqtool.store.segments import SegmentSet

_BYTES = 4096


def anchor(segments: SegmentSet, physical_offset: int) -> dict[str, Any] | None:
    """Digest of the bytes in front of an offset, in one segment; None where no file lies.

    Raises `StoreIOError` or `UnreadableError`.
    """
    found = segments.locate(physical_offset - 1)
    if found is None:
        return None
    segment, position = found
    start = max(position + 1 - _BYTES, 0)
    with segment.open("pread") as source:
        raw = source.window(start, position + 1 - start).tobytes()
    return {
        "segment": segment.base,
        "physical_offset": physical_offset,
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
