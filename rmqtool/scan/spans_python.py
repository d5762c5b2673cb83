"""The plain-Python twin of `kernels.spans`: same functions, same arguments, same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


def first_nonzero(buf: Bytes, start: int) -> int:
    """See `kernels.first_nonzero`."""
    import numpy as np

    block = 1 << 16
    for at in range(start, buf.size, block):
        hits = np.flatnonzero(buf[at : at + block])
        if hits.size:
            return at + int(hits[0])
    return int(buf.size)


def gather(buf: Bytes, positions: Ints, lengths: Ints, offsets: Int32s, out: Bytes) -> int:
    """See `kernels.gather`."""
    total = 0
    offsets[0] = 0
    for i, (at, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        kept = max(length, 0)
        out[total : total + kept] = buf[at : at + kept]
        total += kept
        offsets[i + 1] = total
    return total


def property_texts(
    buf: Bytes, spans: Ints, name_ends: Int32s, names: Bytes, value_ends: Int32s, values: Bytes
) -> tuple[int, int]:
    """See `kernels.property_texts`."""
    return (
        gather(buf, spans[:, 0], spans[:, 1], name_ends, names),
        gather(buf, spans[:, 2], spans[:, 3], value_ends, values),
    )


def message_ids(buf: Bytes, positions: Ints, widths: Ints, offsets: Ints, out: Bytes) -> None:
    """See `kernels.message_ids`."""
    at = 0
    for place, width, offset in zip(positions.tolist(), widths.tolist(), offsets.tolist(), strict=True):
        raw = bytes(buf[place : place + width]) + offset.to_bytes(8, "big", signed=True)
        text = raw.hex().upper().encode()
        memoryview(out)[at : at + len(text)] = text  # type: ignore[arg-type]
        at += len(text)


def property_spans(
    buf: Bytes, positions: Ints, lengths: Ints, spans: Ints, counts: Ints, empty: npt.NDArray[np.bool_]
) -> int:
    """See `kernels.property_spans`."""
    total = 0
    for r, (start, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        pairs: dict[bytes, tuple[int, int, int, int]] = {}
        at = start
        segments = bytes(buf[start : start + max(length, 0)]).split(b"\x02")
        empty[r] = b"" in segments[:-1]
        for segment in segments:
            name, separator, value = segment.partition(b"\x01")
            if name and separator and value:
                first = pairs.get(name, (at,))[0]
                pairs[name] = (first, len(name), at + len(name) + 1, len(value))
            at += len(segment) + 1
        for span in pairs.values():
            spans[total] = span
            total += 1
        counts[r] = len(pairs)
    return total
