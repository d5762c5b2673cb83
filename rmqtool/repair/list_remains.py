"""What damage leaves of the two lists of further queues among the properties of a record.

With `enableMultiDispatch` a broker writes both (`MultiDispatch#wrapMultiDispatch`), and no CRC but `__CRC32#`
covers them.
"""

from __future__ import annotations

from operator import eq

from formats import properties as props

_LISTS = [f"{name}\x01".encode() for name in (props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET)]
_END_OF_NAME, _END = b"TI_", 8
"""from where on the end of a list's name is that of no other property, and bytes of it in a value"""


def has_remains(properties: bytes) -> bool:
    """Whether something may be a list, or have been one: by its name, or a piece that Java drops."""
    pairs = props.decode_pairs(properties)
    return any(one.raw and (not one.is_pair or _is_nearly(one.raw)) for one in pairs)


def without_lists(properties: bytes) -> bytes:
    """Properties less both lists, and what may have been one by its name."""
    return props.encode_segments(one for one in props.decode_pairs(properties) if not _is_nearly(one.raw))


def only_pairs(properties: bytes) -> bytes:
    """Properties less the pieces that Java drops."""
    return props.encode_segments(one for one in props.decode_pairs(properties) if one.is_pair)


def _is_nearly(pair: bytes) -> bool:
    """Whether a property has a list's name: a third of its letters in their place, or its end.

    Other names end alike (`TRAN_PREPARED_QUEUE_OFFSET`, those of clients), so that a name has to have much of
    it. In a value no separator of a name stands.
    """
    value = pair.partition(b"\x01")[2]
    for wanted in _LISTS:
        if len(pair) >= len(wanted) and 3 * sum(map(eq, pair, wanted)) >= len(wanted):
            return True
        if wanted[wanted.index(_END_OF_NAME) :] in pair or wanted[-_END:] in value:
            return True
    return False
