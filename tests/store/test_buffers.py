"""Memory that is used again never changes under who still holds a view of it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from rmqtool.store.buffers import KEPT, LEAST, Buffers

HELD = (
    lambda one: one,
    lambda one: one[5:][3:],
    lambda one: one.view(np.int8)[1:],
    lambda one: memoryview(one)[7:],
    pa.py_buffer,
    lambda one: one.reshape(-1, 1),
)


def base_of(one: Any) -> int:
    return int(one.ctypes.data)


def test_a_buffer_that_nobody_holds_is_given_again() -> None:
    buffers = Buffers()
    first = buffers.take(LEAST + 8)
    place = base_of(first)
    del first
    again = buffers.take(LEAST)
    assert base_of(again) == place
    assert len(again) == LEAST


def test_whatever_holds_a_view_keeps_its_bytes() -> None:
    for held in HELD:
        buffers = Buffers()
        first = buffers.take(LEAST)
        first[:] = 7
        first.flags.writeable = False
        view = held(first)
        before = bytes(view)
        del first
        for value in range(3):
            buffers.take(LEAST)[:] = value
        assert bytes(view) == before


def test_no_more_are_kept_than_that_and_no_held_one_is_given_twice() -> None:
    buffers, chance = Buffers(), random.Random(5)
    held: list[Any] = []
    for value in range(200):
        one = buffers.take(LEAST + chance.randrange(99))
        one[:] = value % 251
        held.append((value % 251, one))
        for _ in range(chance.randrange(2)):
            held.pop(chance.randrange(len(held)))
        del one
    assert all((one == value).all() for value, one in held)
    assert len(buffers._kept) <= KEPT


def test_small_ones_are_not_kept() -> None:
    buffers = Buffers()
    buffers.take(LEAST - 1)
    assert not buffers._kept
