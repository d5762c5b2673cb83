"""Whether two files hold the same bytes; ranges that are holes in both are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import UnreadableError
from rmqtool.repair.content import CHUNK
from rmqtool.store.access import open_source

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile

_FIRST = 1 << 16
"""bytes that are compared first: most of many files hold a few"""


def same_bytes(built: Path, old: StoreFile | None) -> bool:
    """Whether a built file and one of the store have the same bytes; one that cannot be read has not."""
    if old is None or not old.regular or old.size != built.stat().st_size:
        return False
    try:
        with open_source(built, "pread") as one, old.open("pread") as other:
            return _same(one, other)
    except UnreadableError:
        return False


def same_from(one: StoreFile, other: StoreFile | None, start: int) -> bool:
    """Whether two files have the same bytes from a position on."""
    if other is None or not other.regular:
        return False
    with one.open("pread") as this, other.open("pread") as that:
        return _same(this, that, start)


def _same(one: ByteSource, other: ByteSource, at: int = 0) -> bool:
    step = _FIRST
    while True:
        known = [place for place in (one.next_data(at), other.next_data(at)) if place is not None]
        if not known:
            return one.size == other.size
        at = min(known)
        if not np.array_equal(one.window(at, step), other.window(at, step)):
            return False
        at, step = at + step, min(2 * step, CHUNK)
