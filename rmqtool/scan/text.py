"""Spans of a window → Arrow arrays, a column at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.primitives import java_utf8_decode
from rmqtool.scan.fields import SUMMARISED, TEXTS, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.scan.fields import Field
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


def repeated(value: bytes, count: int) -> pa.Array:
    """String column of one value, which is UTF-8: as `pa.repeat`, in a third of the time."""
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(value))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(value * count)])


def fields_as_numbers(
    kernels: Kernels, rows: Ints, kinds: Mapping[Field, pa.DataType]
) -> tuple[dict[Field, pa.Array], dict[Field, list[int]]]:
    """Fields of rows as columns of 32 or 64 bits, made together, and what `Summary` says of `SUMMARISED`."""
    fields, count = sorted(kinds, key=lambda one: kinds[one].bit_width), len(rows)
    few = sum(one.bit_width == 32 for one in kinds.values())
    (small, narrow), (large, wide) = room(few * count, np.int32), room((len(fields) - few) * count, np.int64)
    shaped = narrow.reshape(few, count), wide.reshape(len(fields) - few, count)
    figures = np.empty((len(Summary), len(SUMMARISED)), np.int64)
    kernels.numbers(rows, np.array(SUMMARISED, np.int64), figures, np.array(fields, np.int64), *shaped)
    parts = [small.slice(at * count * 4, count * 4) for at in range(few)]
    parts += [large.slice(at * count * 8, count * 8) for at in range(len(fields) - few)]
    columns = {
        one: pa.Array.from_buffers(kinds[one], count, [None, data])
        for one, data in zip(fields, parts, strict=True)
    }
    return columns, dict(zip(SUMMARISED, figures.T.tolist(), strict=True))


def fields_as_binary(
    kernels: Kernels, window: Bytes, origin: int, rows: Ints, sizes: Mapping[Field, int], compared: int
) -> tuple[dict[Field, pa.Array], int]:
    """Fields of records, some of `TEXTS`, made together; none is null. sizes: the bytes of each.

    Also what of `compared` is the same in all records (`fields.Alike`).
    """
    count = len(rows)
    rooms = {one: (room(count + 1, np.int32), room(size, np.uint8)) for one, size in sizes.items()}
    fields = [one if one in sizes else -1 for one in TEXTS]
    nothing = (None, np.empty(0, np.int32)), (None, np.empty(0, np.uint8))
    ends, out = zip(*(rooms.get(one, nothing) for one in TEXTS), strict=True)
    alike = kernels.gather_fields(
        window,
        origin,
        rows,
        int(compared),
        np.array(fields, np.int64),
        tuple(array for _, array in ends),
        tuple(array for _, array in out),
    )
    columns = {
        one: pa.Array.from_buffers(pa.binary(), count, [None, offsets, data])
        for one, ((offsets, _), (data, _)) in rooms.items()
    }
    return columns, alike


def spans(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of a binary column that is whole, and where in them each value lies: positions, lengths."""
    _, ends, data = column.buffers()
    places = np.frombuffer(ends, np.int32).astype(np.int64)
    return np.frombuffer(data, np.uint8), places[:-1], np.diff(places)


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
    return decoded(binary(kernels, window, positions, lengths, present), ill_formed)


def decoded(array: pa.Array, ill_formed: Flags) -> pa.Array:
    """The same of a binary column."""
    if not ill_formed.any():
        return array.view(pa.string())
    texts = [None if raw is None else java_utf8_decode(raw)[0] for raw in array.to_pylist()]
    return pa.array(texts, pa.string())


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
    if filled.all():
        offsets, values = np.arange(len(words) + 1, dtype=np.int32), words
    else:
        offsets = np.concatenate(([0], np.cumsum(filled))).astype(np.int32)
        values = words.filter(pa.array(filled))
    present = np.asarray(words.is_valid().to_numpy(zero_copy_only=False))
    return pa.Array.from_buffers(
        pa.list_(pa.string()), len(words), [validity(present), pa.py_buffer(offsets)], children=[values]
    )


_V4, _V6 = 8, 20
"""bytes of a host: 4 or 16 of the address, 4 of the port"""


def hosts(window: Bytes, positions: Ints, is_v6: Flags, *, alike: bool) -> pa.Array:
    """`ip:port` strings (IPv6 in brackets); each distinct host of the batch is formatted once.

    alike: all are the same.
    """
    if alike and len(positions):
        raw = window[positions[0] : positions[0] + (_V6 if is_v6[0] else _V4)]
        return repeated(format_host(raw.tobytes()).encode(), len(positions))
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
