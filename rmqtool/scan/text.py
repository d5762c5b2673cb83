"""Spans of a window → Arrow arrays, a column at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.primitives import java_utf8_decode

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


def room(count: int, kind: npt.DTypeLike) -> tuple[pa.Buffer, npt.NDArray[Any]]:
    """Memory of Arrow's for so many values, and an array over it.

    What its pool gives back is given out again as it is; of the system's memory each page is made when it is
    first touched, which takes longer than filling it.
    """
    buffer = pa.allocate_buffer(count * np.dtype(kind).itemsize)
    return buffer, np.frombuffer(buffer, kind)


def numbers(values: Ints, kind: pa.DataType) -> pa.Array:
    """Column of numbers, which fit into its type."""
    data, out = room(len(values), str(kind))
    out[:] = values
    return pa.Array.from_buffers(kind, len(values), [None, data])


def gather(kernels: Kernels, window: Bytes, positions: Ints, lengths: Ints) -> tuple[Any, Any]:
    """Copy spans of `window` into Arrow buffers: (int32 offsets, bytes). A negative length copies nothing."""
    ends, offsets = room(len(positions) + 1, np.int32)
    data, out = room(int(np.maximum(lengths, 0).sum()), np.uint8)
    kernels.gather(window, positions, lengths, offsets, out)
    return ends, data


def validity(present: Flags) -> Any:
    """Arrow validity bitmap, or None when nothing is missing."""
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def binary(kernels: Kernels, window: Bytes, positions: Ints, lengths: Ints, present: Flags) -> pa.Array:
    """Binary column; null where `present` is false."""
    offsets, data = gather(kernels, window, positions, np.where(present, lengths, 0))
    return pa.Array.from_buffers(pa.binary(), len(positions), [validity(present), offsets, data])


def strings(
    kernels: Kernels, window: Bytes, positions: Ints, lengths: Ints, present: Flags, ill_formed: Flags
) -> pa.Array:
    """String column by Java's decoding; the bytes are used as they are where no record is `ill_formed`."""
    array = binary(kernels, window, positions, lengths, present)
    if not (ill_formed & present).any():
        return array.view(pa.string())
    decoded = [None if raw is None else java_utf8_decode(raw)[0] for raw in array.to_pylist()]
    return pa.array(decoded, pa.string())


def split_words(words: pa.Array) -> pa.Array:
    """KEYS → list of its non-empty elements (`IndexService#buildIndex` splits at blanks)."""
    import pyarrow.compute as pc

    buffers = words.buffers()[1:]
    ends, data = (np.frombuffer(one or b"", kind) for one, kind in zip(buffers, "iB", strict=True))
    if not (data == ord(" ")).any():
        return _single_words(words, np.diff(ends[words.offset : words.offset + len(words) + 1]) > 0)
    pieces = pc.split_pattern(words, " ")
    flat = pieces.flatten()
    kept = np.asarray(pc.not_equal(flat, "").to_numpy(zero_copy_only=False), dtype=np.int64)
    counted = np.concatenate(([0], np.cumsum(kept)))
    starts = np.zeros(len(words) + 1, np.int64)
    starts[1:] = np.cumsum(pc.fill_null(pc.list_value_length(pieces), 0).to_numpy(zero_copy_only=False))
    offsets = counted[starts].astype(np.int32)
    present = np.asarray(words.is_valid().to_numpy(zero_copy_only=False))
    values = flat.filter(pa.array(kept.astype(bool)))
    return pa.Array.from_buffers(
        pa.list_(pa.string()), len(words), [validity(present), pa.py_buffer(offsets)], children=[values]
    )


def _single_words(words: pa.Array, filled: Flags) -> pa.Array:
    """The usual column of keys, in which none holds a blank; `filled` are not empty."""
    offsets = np.concatenate(([0], np.cumsum(filled))).astype(np.int32)
    values = words if filled.all() else words.filter(pa.array(filled))
    present = np.asarray(words.is_valid().to_numpy(zero_copy_only=False))
    return pa.Array.from_buffers(
        pa.list_(pa.string()), len(words), [validity(present), pa.py_buffer(offsets)], children=[values]
    )


_V4, _V6 = 8, 20
"""bytes of a host: 4 or 16 of the address, 4 of the port"""


def hosts(kernels: Kernels, window: Bytes, positions: Ints, is_v6: Flags) -> pa.Array:
    """`ip:port` strings (IPv6 in brackets); each distinct host of the batch is formatted once."""
    if len(positions) and (is_v6 == is_v6[0]).all():
        width = _V6 if is_v6[0] else _V4
        if kernels.same_spans(window, positions, width):  # as usual, of store hosts
            raw = window[positions[0] : positions[0] + width]
            return pa.repeat(format_host(raw.tobytes()), len(positions))
    codes = np.empty(len(positions), np.int32)
    names: list[str] = []
    for wide in (False, True):
        chosen = np.flatnonzero(is_v6 == wide)
        if chosen.size:
            distinct, found = np.unique(_hosts_at(window, positions[chosen], wide=wide), return_inverse=True)
            codes[chosen] = found + len(names)
            names += [format_host(item.tobytes()) for item in distinct]
    coded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string()))
    return coded.dictionary_decode()


def _hosts_at(window: Bytes, positions: Ints, *, wide: bool) -> npt.NDArray[Any]:
    """Hosts as they lie, the narrow ones as numbers, which sort faster."""
    kind = f"V{_V6}" if wide else f"u{_V4}"
    every = np.ndarray(max(window.size - np.dtype(kind).itemsize + 1, 0), kind, window.data, strides=(1,))
    return every[positions]


def format_host(raw: bytes) -> str:
    """Host field (4 or 16 address bytes and an i32 port) as `ip:port`."""
    import ipaddress

    address, port = raw[:-4], int.from_bytes(raw[-4:], "big", signed=True)
    name = str(ipaddress.ip_address(address))
    return f"[{name}]:{port}" if len(address) == 16 else f"{name}:{port}"


def offset_message_ids(
    kernels: Kernels, window: Bytes, positions: Ints, is_v6: Flags, offsets: Ints
) -> pa.Array:
    """Upper-case hex of store host and physical offset (`MessageDecoder#createMessageId`)."""
    widths = np.where(is_v6, _V6, _V4)
    ends = np.concatenate(([0], np.cumsum(2 * (widths + offsets.itemsize)))).astype(np.int32)
    data, out = room(int(ends[-1]), np.uint8)
    kernels.message_ids(window, positions, widths, offsets, out)
    return pa.Array.from_buffers(pa.string(), len(positions), [None, pa.py_buffer(ends), data])
