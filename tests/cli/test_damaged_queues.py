"""`query-offset` and `query-time` on a damaged queue: what a broker passes over without a word is said."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import HandmadeStore, healthy_store
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FILES = [f"consumequeue/Orders/0/{base:020d}" for base in (0, 400, 800)]


def _zero(store: HandmadeStore) -> None:
    path, position = store.of("Orders")[25].unit or ("", 0)
    store.patch(path, position, bytes(20))


def _far(store: HandmadeStore) -> None:
    path, position = store.of("Orders")[5].unit or ("", 0)
    store.patch(path, position, struct.pack(">q", 1 << 40))


def _long(store: HandmadeStore) -> None:
    """The size of the units in front of a queue's first message, on a unit that leads to a message."""
    path, position = store.of("Orders")[5].unit or ("", 0)
    store.patch(path, position + 8, struct.pack(">i", (1 << 31) - 1))


def _foreign(store: HandmadeStore) -> None:
    other, (path, position) = store.of("Payments")[3], store.of("Orders")[5].unit or ("", 0)
    store.patch(path, position, struct.pack(">qi", other.offset, other.size))


def _copied(store: HandmadeStore) -> None:
    store.patch(_FILES[1], 0, (store.root / _FILES[0]).read_bytes())


DAMAGE: dict[str, tuple[Callable[[HandmadeStore], None], int, str]] = {
    "zero": (_zero, 25, "an invalid entry ends the queue here; 22 entries lie behind it"),
    "cut": (lambda store: os.truncate(store.root / _FILES[1], 210), 38, "the file has 210 of 400 bytes"),
    "gone": (lambda store: store.remove(_FILES[1]), 28, "no file has the entries from byte 400 to 800"),
    "far": (_far, 33, "entries from queue offset 5 on lead to no record"),
    "foreign": (_foreign, 48, "entries from queue offset 5 on lead to messages of other queues (1 of them)"),
    "copied": (
        _copied,
        48,
        "lead to messages of other queue offsets (20 of them), the first to one of queue offset 0",
    ),
}


@pytest.mark.share
@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_passed_over_is_said(tmp_path: Path, name: str) -> None:
    damage, listed, words = DAMAGE[name]
    store = healthy_store().write(tmp_path)
    asked = ("query-offset", tmp_path, "Orders", 0, "min", "-n", 100, "--format", "ndjson")
    assert (rmq(*asked).exit_code, rmq(*asked).rows[-1]["messages"]) == (0, 48)
    damage(store)
    result = rmq(*asked)
    summary = result.rows[-1]
    assert (result.exit_code, summary["messages"], summary["incomplete_reason"]) == (3, listed, "damage")
    assert any(words in row["error"] for row in summary["not_covered"])
    if name != "far":
        assert rmq("query-time", tmp_path, "Orders", 0, 0).exit_code == 3


def test_a_unit_with_the_size_of_those_in_front(tmp_path: Path) -> None:
    _long(healthy_store().write(tmp_path))
    result = rmq("query-offset", tmp_path, "Orders", 0, "min", "-n", 100, "--format", "ndjson")
    summary = result.rows[-1]
    assert (result.exit_code, summary["messages"], summary["incomplete_reason"]) == (3, 46, "damage")
    assert "entries from queue offset 5 on lead to no record" in str(summary["not_covered"])
    assert rmq("query-time", tmp_path, "Orders", 0, 0).exit_code == 3
