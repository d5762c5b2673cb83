"""Remains of the two lists of further queues."""

from __future__ import annotations

import pytest

from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, decode
from rmqtool.repair.list_remains import has_remains, only_pairs, without_lists

NAMES, OFFSETS = f"{INNER_MULTI_DISPATCH}\x01%LMQ%a", f"{INNER_MULTI_QUEUE_OFFSET}\x0152"
REMAINS = [
    (NAMES, OFFSETS),
    (NAMES, "TAGS\x01t"),
    ("INNER_MULTI_QU_MULTI_QUEUE_",),
    ("INNER_MULTI_QVEUE_OFFSET\x0152",),
    ("\x01",),
    ("xxxxR_MULTI_DISPATCH\x01%LMQ%a",),
    ("TAGS\x01Taxxxxx_QUEUE_OFFSET\x0152",),
    ("INNxxxxxxxxxxxxPATCH\x01%LMQ%a",),
]
NONE = [
    (),
    ("KEYS\x01k", "TAGS\x01t"),
    ("INNER_NUM\x013", "INNER_BASE\x0123"),
    ("UNIQ_KEY\x01" + "7" * 32,),
    ("TRAN_PREPARED_QUEUE_OFFSET\x0152", "POP_CK_OFFSET\x017"),
    ("SOURCE_OFFSET\x01" + "5" * 30, "ORIGIN_QUEUE_OFFSET\x019", "AUTO_DISPATCH\x01" + "y" * 30),
]


def joined(parts: tuple[str, ...]) -> bytes:
    return "\x02".join(("KEYS\x01k", *parts)).encode()


@pytest.mark.parametrize("parts", REMAINS)
def test_what_is_left_of_lists_is_seen_and_goes(parts: tuple[str, ...]) -> None:
    assert has_remains(joined(parts))
    left = only_pairs(without_lists(joined(parts)))
    assert not has_remains(left)
    assert decode(left).items() >= {"KEYS": "k"}.items()


@pytest.mark.parametrize("parts", NONE)
def test_other_properties_stay(parts: tuple[str, ...]) -> None:
    assert not has_remains(joined(parts))
    assert without_lists(joined(parts)) == joined(parts)
