"""Pulls from mapped files: what a pull of more than a look answers, or left to that."""

from __future__ import annotations

import os
import struct
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool import Message
from rmqtool.errors import StoreIOError
from rmqtool.messagestore import mapped_pulls
from rmqtool.messagestore.messages import AppendContext, GetResult, RawResult
from tests.messagestore.helpers import RELEASES, open_small, traffic
from tests.scan.conftest import compiled_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool import MessageStore

TOPICS = ("Topic0", "Topic1")
QUICK = {"diskMaxUsedSpaceRatio": 99, "deleteCommitLogFilesInterval": 1, "deleteConsumeQueueFilesInterval": 1}
PER_FILE = 20
"""units of a small queue file"""


@pytest.fixture(scope="module", params=RELEASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    """Many segments and queue files; the oldest segments have expired."""
    assert compiled_kernels().walk
    root = tmp_path_factory.mktemp("at-hand")
    with open_small(root, request.param, mappedFileSizeCommitLog=1 << 14, **QUICK) as store:
        store.put_many(traffic(0, 400))
        store.flush()
        for segment in sorted((root / "commitlog").iterdir())[:2]:
            os.utime(segment, (0, 0))
        assert store.expire().segments == 2
        store.put_many(traffic(400, 300))
        yield store


def pulled(store: MessageStore, topic: str, queue_id: int, offset: int, limit: int = 1) -> RawResult:
    """What the pull of more than a look answers: it takes those with a filter, which all messages pass."""
    return store.get_raw(topic, queue_id, offset, limit, tags="*", wait=0)


@given(
    st.sampled_from(TOPICS),
    st.integers(-1, 4),
    st.integers(-3, 200),
    st.sampled_from([1, 2, 5, 31, 32, 33, 400, 0, -1]),
    st.booleans(),
)
def test_the_answer_is_that_of_a_pull(
    store: MessageStore, topic: str, queue_id: int, offset: int, limit: int, of_end: bool
) -> None:
    if of_end:
        offset += store.offsets(topic, queue_id)[1] - 3
    found = store.get_raw(topic, queue_id, offset, limit)
    wanted = pulled(store, topic, queue_id, offset, limit)
    assert found == wanted
    assert type(found) is type(wanted)
    messages = store.get(topic, queue_id, offset, limit)
    of_a_pull = store.get(topic, queue_id, offset, limit, tags="*")
    assert messages == of_a_pull
    assert type(messages) is type(of_a_pull)
    assert [type(one.raw) for one in messages.messages] == [bytes] * len(messages.messages)


def test_it_answers_what_there_is(store: MessageStore) -> None:
    for topic, queue_id in store.queues():
        low, high = store.offsets(topic, queue_id)
        assert high - low > PER_FILE
        for offset in range(low, high):
            found = store._mapped_pulls.pull(topic, queue_id, offset, 1, RawResult)
            assert found == pulled(store, topic, queue_id, offset)
            messages = store._mapped_pulls.pull(topic, queue_id, offset, 1, GetResult)
            assert messages == store.get(topic, queue_id, offset, 1, tags="*")
        for form in (RawResult, GetResult):
            assert store._mapped_pulls.pull(topic, queue_id, low - 1, 1, form) is None
            assert store._mapped_pulls.pull(topic, queue_id, high, 32, form) is None
    for get in (store.get_raw, store.get):
        counted = store.stats().get
        get("Topic0", 0, high - 1, 1)
        assert (store.stats().get.hit, store.stats().get.messages) == (counted.hit + 1, counted.messages + 1)


def test_of_many_files_the_first_are_at_hand_and_others_by_and_by(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_pulls, "MOST", 2)
    low, high = store.offsets("Topic0", 0)
    store._mapped_pulls.forget("")
    monkeypatch.setattr(mapped_pulls, "SELDOM", 3)
    for _ in range(3):
        for offset in range(low, high):
            assert store.get_raw("Topic0", 0, offset, 1) == pulled(store, "Topic0", 0, offset)
    assert len(store._mapped_pulls._units) <= 2
    assert len(store._mapped_pulls._segments) <= 2


def test_files_that_expire_are_let_go(tmp_path: Path) -> None:
    with open_small(tmp_path, **QUICK) as store:
        store.put_many([Message("T", b"x" * 1000, queue_id=0) for _ in range(100)])
        store.flush()
        view = store.get_raw("T", 0, 0, 1).records[0]
        raw = bytes(view)
        for segment in sorted((tmp_path / "commitlog").iterdir())[:-1]:
            os.utime(segment, (0, 0))
        store.expire()
        assert bytes(view) == raw
        del view
        assert store.get_raw("T", 0, 0, 1) == pulled(store, "T", 0, 0)
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        assert str(tmp_path) in maps  # of what is still there
        assert not [line for line in maps.splitlines() if str(tmp_path) in line and "(deleted)" in line]


@pytest.mark.parametrize(
    "most",
    [
        {"maxTransferCountOnMessageInMemory": 0},
        {"maxTransferCountOnMessageInMemory": -1},
        {"accessMessageInMemoryMaxRatio": 0},
    ],
)
def test_limits_are_those_of_a_pull(tmp_path: Path, most: dict[str, int]) -> None:
    with open_small(tmp_path, maxTransferBytesOnMessageInMemory=3000, **most) as store:
        store.put_many([Message("T", b"x" * 1000, queue_id=0) for _ in range(12)])
        for begin, limit in product((0, 3), (1, 2, 12)):
            assert store.get_raw("T", 0, begin, limit) == pulled(store, "T", 0, begin, limit)


@pytest.mark.parametrize("limit", [1, 32])
@pytest.mark.parametrize("file", ["commitlog", "consumequeue/T/0"])
def test_what_another_process_cut_is_an_error(tmp_path: Path, file: str, limit: int) -> None:
    with open_small(tmp_path, mappedFileSizeCommitLog=1 << 20, mappedFileSizeConsumeQueue=20000) as store:
        store.put_many([Message("T", b"x" * 1000, queue_id=0) for _ in range(800)])
        assert len(store.get_raw("T", 0, 760, limit).records) == limit
        path = min((tmp_path / file).iterdir())
        size = path.stat().st_size
        os.truncate(path, 8192)
        for get in (store.get_raw, store.get):
            with pytest.raises(StoreIOError, match="another process cut it"):
                get("T", 0, 760, limit)
        assert len(store.get_raw("T", 0, 1, 1).records) == 1
        os.truncate(path, size)


def test_a_topic_that_is_in_memory_since_is_read_there(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        store.put(Message("T", b"on disk", queue_id=0))
        assert store.get_raw("T", 0, 0, 1).max_offset == 1
        store.topics.delete("T")
        store.topics.set("T", memory=True)
        store.put(Message("T", b"in memory", queue_id=0))
        assert store.get_raw("T", 0, 0, 1).max_offset == 2
        assert store.get("T", 0, 1, 1).messages[0].body == b"in memory"


FAR = (1 << 63) - 1


@pytest.mark.share
@pytest.mark.parametrize("limit", [1, 2, 32])
@pytest.mark.parametrize(
    "unit",
    [
        (FAR, 100, 0),
        (-1, 100, 0),
        (-FAR - 1, 100, 0),
        (FAR - 5, -5, 0),
        (0, 0, 0),
        (50, -1, 0),
        (0, 1 << 30, 0),
    ],
)
def test_units_that_lie_are_left_to_a_pull(tmp_path: Path, unit: tuple[int, int, int], limit: int) -> None:
    with open_small(tmp_path, mappedFileSizeCommitLog=1 << 16, mappedFileSizeConsumeQueue=2000) as store:
        store.put_many([Message("T", b"x" * 100, queue_id=0) for _ in range(40)])
        assert len(store.get_raw("T", 0, 0).records) == 32
        path = min((tmp_path / "consumequeue/T/0").iterdir())
        raw = path.read_bytes()
        for place in (0, 1, 31):
            with path.open("r+b") as file:
                file.write(raw)
                file.seek(place * 20)
                file.write(struct.pack(">qiq", *unit))
            for offset in (place, 0):
                assert store.get_raw("T", 0, offset, limit) == pulled(store, "T", 0, offset, limit)


def test_the_bytes_of_a_pull_are_those_of_a_pull(tmp_path: Path) -> None:
    with open_small(
        tmp_path, mappedFileSizeCommitLog=1 << 20, maxTransferBytesOnMessageInMemory=9000
    ) as store:
        store.put_many(
            [Message("T", b"x" * size, queue_id=0) for size in (10, 4000, 4000, 10, 10, 20_000, 10)]
        )
        for offset in range(7):
            assert store.get_raw("T", 0, offset, 32) == pulled(store, "T", 0, offset, 32)


def test_records_that_end_with_zeros_are_at_hand(tmp_path: Path) -> None:
    """Nothing was cut there."""
    with open_small(tmp_path, mappedFileSizeCommitLog=1 << 16) as store:
        context = AppendContext(properties=b"a\x01\x00")
        for _ in range(3):
            store.put(Message("T", b"x", queue_id=0), context=context)
        assert store.offsets("T", 0) == (0, 3)  # all is dispatched
        for limit in (1, 3):
            found = store._mapped_pulls.pull("T", 0, 0, limit, RawResult)
            assert found == pulled(store, "T", 0, 0, limit)
            assert store.get("T", 0, 0, limit) == store.get("T", 0, 0, limit, tags="*")
