"""Ids for messages that have none, at any moment of a month."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.message_id import UniqueClientId
from rmqtool.messagestore import records

pytestmark = pytest.mark.usefixtures("utc")


@pytest.fixture(scope="module")
def utc() -> pytest.MonkeyPatch:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        records.time.tzset()
        yield patch
    records.time.tzset()


def made_at(seconds: float, count: int) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records.time, "time", lambda: seconds)
        keys = records.UniqueKeys(bytes([127, 0, 0, 1]))
        return [keys.next_key(), *keys.next_keys(count).to_pylist()]


@pytest.mark.parametrize("day", range(1, 32))
def test_each_day_of_a_month_has_ids(day: int) -> None:
    """From day 25 on, the time is over 2^31 ms."""
    moment = datetime(2026, 12, day, 23, 59, 59, tzinfo=UTC).timestamp()
    made = made_at(moment, 3)
    assert len(set(made)) == 4
    assert {UniqueClientId.decode(text).created_near(int(moment * 1000)) for text in made} == {
        int(moment * 1000)
    }


def test_no_id_is_given_with_the_old_head_while_a_new_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records.os, "urandom", lambda length: (1).to_bytes(length, "big"))
    keys = records.UniqueKeys(bytes([127, 0, 0, 1]))
    given = {keys.next_key() for _ in range(0xFFFF)}
    asked, going_on, now = Event(), Event(), time.time() + 1

    def clock() -> float:
        asked.set()
        going_on.wait(10)
        return now

    monkeypatch.setattr(records.time, "time", clock)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(keys.next_key)
        asked.wait(10)
        second = pool.submit(keys.next_key)
        time.sleep(0.05)
        going_on.set()
        assert len({first.result(), second.result()} | given) == 0xFFFF + 2


@given(st.integers(1_000_000_000, 4_000_000_000))
def test_an_id_says_when_it_was_made(seconds: int) -> None:
    made = UniqueClientId.decode(made_at(seconds, 0)[0])
    assert made.created_near(seconds * 1000 + 5000) == seconds * 1000
