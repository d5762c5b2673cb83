"""Lists of further queues: one of the two is there, and of the other only what damage left of it.

With `enableMultiDispatch` a broker writes both (`MultiDispatch#wrapMultiDispatch`), and no CRC but `__CRC32#`
covers them. A record with one list alone feeds no further queue, whatever entries these have of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats import properties as props
from rmqtool.scan.fields import Field
from rmqtool.scan.multi import one_list_alone

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

_LISTS = props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET


def broken_lists(run: Records, kernels: Kernels) -> npt.NDArray[np.bool_]:
    """Which records have such lists."""
    found = np.zeros(len(run.rows), np.bool_)
    if kernels.building.are_single(run.window, run.origin, run.rows):
        return found
    for index in one_list_alone(run, kernels).tolist():
        start = int(run.rows[index, Field.PROPERTIES_POSITION]) - run.origin
        length = int(run.rows[index, Field.PROPERTIES_LENGTH])
        found[index] = has_broken_list(run.window[start : start + length].tobytes())
    return found


def has_broken_list(properties: bytes) -> bool:
    """Whether one list is alone, and something may be the other.

    That is a piece that Java drops, or a property whose name has one wrong letter.
    """
    pairs = props.decode_pairs(properties)
    there = [name for name in _LISTS if any(one.name == name for one in pairs)]
    if len(there) != 1:
        return False
    other = next(name for name in _LISTS if name not in there)
    return any(one.raw and (not one.is_pair or _is_nearly(one.raw, other)) for one in pairs)


def without_lists(properties: bytes) -> bytes:
    """Properties less both lists, under a name with a wrong letter too."""
    pairs = props.decode_pairs(properties)
    return props.encode_segments(
        one for one in pairs if not any(_is_nearly(one.raw, name) for name in _LISTS)
    )


def only_pairs(properties: bytes) -> bytes:
    """Properties less the pieces that Java drops."""
    return props.encode_segments(one for one in props.decode_pairs(properties) if one.is_pair)


def _is_nearly(pair: bytes, name: str) -> bool:
    """Whether a property has this name, or one with one other byte in it."""
    wanted = f"{name}\x01".encode()
    return len(pair) >= len(wanted) and sum(a != b for a, b in zip(pair, wanted, strict=False)) <= 1
