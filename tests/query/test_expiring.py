"""Messages by offset and by time, while segments and queue files expire between listing and reading."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.broker.offset_by_time import Boundary
from rmqtool.query.offset_query import OffsetQuery
from rmqtool.query.served_queue import find_queue, read_rules, served_queue
from rmqtool.query.time_query import TimeQuery
from rmqtool.query.verdict import Question
from rmqtool.store.layout import Store
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rmqtool.broker.queue_view import QueueView

MESSAGES = 100
PER_SEGMENT = 30
LATE = 1 << 50


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with open_small(tmp_path / "store") as store:
        store.put_many([Message("T", b"%d" % number, queue_id=0) for number in range(MESSAGES)])
    return tmp_path / "store"


@contextmanager
def listed(root: Path) -> Iterator[tuple[Store, QueueView]]:
    seen = Store.open(root)
    assert len(seen.segments) > 2
    assert find_queue(seen, "T", 0).files
    with served_queue(seen, "T", 0, read_rules(seen, None)) as view:
        yield seen, view


def expire(root: Path) -> None:
    for directory in ("commitlog", "consumequeue/T/0"):
        (root / directory / f"{0:020}").unlink()


def by_offset(seen: Store, view: QueueView, offset: int) -> OffsetQuery:
    return OffsetQuery(seen, view, read_rules(seen, None), Question("T", 0, offset))


def slots(query: OffsetQuery | TimeQuery) -> list[int]:
    columns = ["queue_offset"]
    batches = query.batches(MESSAGES, columns) if isinstance(query, OffsetQuery) else query.batches(columns)
    return [one for batch, _ in batches for one in batch["queue_offset"].to_pylist()]


@pytest.mark.parametrize("offset", [0, 60, MESSAGES])
def test_what_expires_when_all_is_listed_changes_nothing(root: Path, offset: int) -> None:
    with listed(root) as (seen, view):
        query = by_offset(seen, view, offset)
        assert slots(query) == list(range(offset, MESSAGES))
        expire(root)
        assert query.summary()["complete"]


def test_what_expires_in_front_of_the_offset_is_not_missed(root: Path) -> None:
    with listed(root) as (seen, view):
        query = by_offset(seen, view, 60)
        expire(root)
        assert slots(query) == list(range(60, MESSAGES))
        assert query.summary()["complete"]


def test_what_expires_before_it_is_listed_is_named(root: Path) -> None:
    with listed(root) as (seen, view):
        query = by_offset(seen, view, 0)
        expire(root)
        assert slots(query) == list(range(PER_SEGMENT, MESSAGES))
        summary = query.summary()
        (row,) = summary["not_covered"]
        assert (row["reason"], row["queue_offset"], row["messages"]) == ("unreadable", 0, PER_SEGMENT)
        assert "pull" not in summary  # of messages without a byte


def test_the_first_after_a_time_may_have_expired(root: Path) -> None:
    with listed(root) as (seen, view):
        expire(root)
        query = TimeQuery(seen, view, read_rules(seen, None), 0)
        assert slots(query) == [PER_SEGMENT]
        summary = query.summary()
    (row,) = summary["not_covered"]
    assert (row["path"], row["queue_offset"], row["messages"]) == ("consumequeue/T/0", 0, PER_SEGMENT)
    assert (row["reason"], summary["unknown_times"]) == ("unreadable", 0)


def test_the_last_before_a_time_has_not_expired(root: Path) -> None:
    with listed(root) as (seen, view):
        expire(root)
        query = TimeQuery(seen, view, read_rules(seen, None), LATE, Boundary.UPPER)
        assert slots(query) == [MESSAGES - 1]
        assert query.summary()["complete"]


def test_nothing_is_left_of_what_was_stored_by_then(root: Path) -> None:
    with listed(root) as (seen, view):
        expire(root)
        query = TimeQuery(seen, view, read_rules(seen, None), 0, Boundary.UPPER)
        assert (slots(query), query.summary()["incomplete_reason"]) == ([], "unreadable")
