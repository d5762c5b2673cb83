"""Properties → Arrow map column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from formats import properties as declared
from rmqtool.scan.text import room

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

_SMALLEST_PAIR = 4
"""name, separator, value, separator: at most one pair in so many bytes, and one more at the end"""


class Maps(NamedTuple):
    """Properties of a run. empty: whether a record's begin with a separator or double one.

    Java drops what is between them.
    """

    column: pa.Array
    """map<string, string>"""
    counts: Ints
    """pairs of each record"""
    empty: npt.NDArray[np.bool_]


def property_maps(
    kernels: Kernels,
    window: npt.NDArray[np.uint8],
    positions: Ints,
    lengths: Ints,
    ill_formed: npt.NDArray[np.bool_],
) -> Maps:
    """See `Maps`; the last of several equal names wins."""
    sizes = np.maximum(lengths, 0)
    spans = np.empty((int((sizes // _SMALLEST_PAIR + 1).sum()), 4), np.int64)
    counts = np.zeros(len(positions), np.int64)
    empty = np.zeros(len(positions), bool)
    total = int(kernels.property_spans(window, positions, sizes, spans, counts, empty))
    if ill_formed.any():
        return Maps(*_decoded(window, positions, sizes), empty)
    names, values = _texts(kernels, window, spans[:total], int(sizes.sum()))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return Maps(pa.MapArray.from_arrays(pa.array(offsets), names, values), counts, empty)


def _texts(kernels: Kernels, window: Any, spans: Ints, most: int) -> tuple[pa.Array, pa.Array]:
    """Names and values of pairs, at most so many bytes."""
    count = len(spans)
    (ends, name_ends), (other_ends, value_ends) = room(count + 1, np.int32), room(count + 1, np.int32)
    names, values = np.empty(most, np.uint8), np.empty(most, np.uint8)
    used = kernels.property_texts(window, spans, name_ends, names, value_ends, values)
    return _strings(count, ends, names[: used[0]]), _strings(count, other_ends, values[: used[1]])


def _strings(count: int, ends: pa.Buffer, raw: npt.NDArray[np.uint8]) -> pa.Array:
    data, out = room(len(raw), np.uint8)
    out[:] = raw
    return pa.Array.from_buffers(pa.string(), count, [None, ends, data])


def _decoded(window: npt.NDArray[np.uint8], positions: Ints, sizes: Ints) -> tuple[pa.Array, Ints]:
    """A batch that holds ill-formed UTF-8, record by record through the declared decoder."""
    maps = [
        declared.decode(window[at : at + size].tobytes())
        for at, size in zip(positions.tolist(), sizes.tolist(), strict=True)
    ]
    array = pa.array([list(one.items()) for one in maps], pa.map_(pa.string(), pa.string()))
    return array, np.array([len(one) for one in maps], np.int64)
