"""Keys in mapped files: what following their chains record by record answers, or left to that."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.index import item_position
from rmqtool import Message
from rmqtool.errors import StoreIOError
from rmqtool.messagestore import mapped_keys
from tests.messagestore.helpers import RELEASES, open_small
from tests.scan.conftest import compiled_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool import MessageStore
    from rmqtool.messagestore.messages import StoredMessage

NAMES = ["Aa", "BB", "AaAa", "BBBB", "ключ", "鍵", "\U0001f511", *(f"k{number}" for number in range(20))]
ODD = ["", " ", "Aa BB", "absent", "\ud800", "k" * 600, "k1 "]
QUICK = {"diskMaxUsedSpaceRatio": 99, "deleteCommitLogFilesInterval": 1, "deleteConsumeQueueFilesInterval": 1}


@pytest.fixture(scope="module", params=RELEASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    """Many segments and index files; the oldest segments have expired."""
    assert compiled_kernels().walk
    chance = random.Random(request.param)
    root = tmp_path_factory.mktemp("keys-at-hand")
    with open_small(root, request.param, mappedFileSizeCommitLog=1 << 14, **QUICK) as store:
        for _ in range(2):
            keys = [chance.sample(NAMES, chance.randrange(4)) for _ in range(300)]
            store.put_many([Message(f"T{len(some) % 2}", b"x" * 40, keys=some) for some in keys])
            store.flush()
            for segment in sorted((root / "commitlog").iterdir())[:2]:
                os.utime(segment, (0, 0))
            store.expire()
        yield store


def followed(
    store: MessageStore, topic: str, key: str, limit: int = 32, begin: int = 0, end: int | None = None
) -> list[StoredMessage]:
    """Record after record."""
    return store._keys._followed(topic, key, limit, begin, end)


@settings(max_examples=50)
@given(
    st.sampled_from(["T0", "T1", "T", ""]),
    st.sampled_from([*NAMES, *ODD]),
    st.sampled_from([1, 2, 5, 32, 33, 400]),
    st.integers(-1, 6),
    st.integers(-1, 6),
)
def test_the_answer_is_that_of_record_after_record(
    store: MessageStore, topic: str, key: str, limit: int, first: int, last: int
) -> None:
    times = sorted(one.store_timestamp for name in NAMES for one in followed(store, "T1", name, 400))
    bounds = [0, times[0], times[0] + 1, times[-1], times[-1] + 1, -(1 << 70), 1 << 70]
    begin, end = 0 if first < 0 else bounds[first], None if last < 0 else bounds[last]
    wanted = followed(store, topic, key, limit, begin, end)
    assert store.query_key(topic, key, limit, begin=begin, end=end) == wanted
    if key != "\ud800":
        each = store.query_key(topic, [key, "k3"], limit, begin=begin, end=end)
        assert each == {key: wanted, "k3": followed(store, topic, "k3", limit, begin, end)}


def test_it_answers_what_there_is(store: MessageStore) -> None:
    for name in NAMES[7:]:
        for limit in (1, 32):
            assert store._keys._mapped_keys.find("T1", name, limit, 0, None) == followed(
                store, "T1", name, limit
            )
    assert list(store._keys._mapped_keys.find_each("T1", ["k1", "k2"], 32, 0, None)) == [
        followed(store, "T1", name) for name in ("k1", "k2")
    ]


def test_many_keys_of_large_messages(tmp_path: Path) -> None:
    """More bytes than are copied together."""
    bodies = {f"k{number}": bytes([number]) * (3 << 20) for number in range(7)}
    with open_small(tmp_path, mappedFileSizeCommitLog=16 << 20) as store:
        for key, body in bodies.items():
            store.put(Message("T", body, keys=[key], queue_id=0))
        found = store.query_key("T", ["k5", "none", *bodies])
    assert {key: [one.body for one in some] for key, some in found.items()} == {
        "none": [],
        **{key: [body] for key, body in bodies.items()},
    }


def test_messages_of_many_keys_are_no_reason_to_collect_garbage(tmp_path: Path) -> None:
    """Each collection walks all that was made since the last one, and every tenth more."""
    keys = [f"k{number}" for number in range(3000)]
    with open_small(
        tmp_path, mappedFileSizeCommitLog=1 << 20, maxIndexNum=4000, maxHashSlotNum=1000
    ) as store:
        store.put_many([Message("T", b"x", keys=[key]) for key in keys])
        store.query_key("T", keys[:1])
        gc.collect()
        before = gc.get_stats()[0]["collections"]
        found = store.query_key("T", keys)
        assert gc.get_stats()[0]["collections"] - before <= 1
    assert gc.isenabled()
    assert list(map(len, found.values())) == [1] * len(keys)


def test_what_is_put_is_found_while_files_come_and_go(tmp_path: Path) -> None:
    with open_small(tmp_path, mappedFileSizeCommitLog=1 << 14, maxIndexNum=50, **QUICK) as store:
        for number in range(400):
            store.put(Message("T", b"%d" % number, keys=[f"k{number}", "same"]))
            assert [one.body for one in store.query_key("T", f"k{number}", 1)] == [b"%d" % number]
            assert store.query_key("T", "same", 3) == followed(store, "T", "same", 3)
            assert store.query_key("T", f"k{number + 1}") == []
        assert len(store._opened.index.paths) > 10  # type: ignore[union-attr]


def test_of_many_segments_those_asked_for_are_at_hand(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_keys, "MOST", 2)
    store._keys.forget("")
    for _ in range(3):
        for name in NAMES:
            assert store.query_key("T0", name) == followed(store, "T0", name)
        each = store.query_key("T0", NAMES)
        assert each == {name: followed(store, "T0", name) for name in NAMES}


def test_files_that_expire_are_let_go(tmp_path: Path) -> None:
    with open_small(tmp_path, maxIndexNum=50, **QUICK) as store:
        store.put_many([Message("T", b"x" * 1000, keys=[f"k{number}"]) for number in range(100)])
        store.flush()
        found = store.query_key("T", "k1")
        for segment in sorted((tmp_path / "commitlog").iterdir())[:-1]:
            os.utime(segment, (0, 0))
        assert store.expire().index_files
        assert found[0].body == b"x" * 1000
        assert store.query_key("T", "k1") == []
        assert len(store.query_key("T", "k99")) == 1
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        assert not [line for line in maps.splitlines() if str(tmp_path) in line and "(deleted)" in line]


@pytest.mark.parametrize("end", [0, 4096])
@pytest.mark.parametrize("many", [False, True])
def test_an_index_file_that_is_cut_is_an_error(tmp_path: Path, end: int, many: bool) -> None:
    """Zeros in its mapping are not the end of a chain."""
    with open_small(tmp_path, maxHashSlotNum=2000, maxIndexNum=4000) as store:
        store.put_many([Message("T", b"x", keys=[f"k{number}"]) for number in range(50)])
        asked = ["k1", "absent"] if many else "absent"
        assert store.query_key("T", asked) == (
            {"k1": store.query_key("T", "k1"), "absent": []} if many else []
        )
        path = next((tmp_path / "index").iterdir())
        size = path.stat().st_size
        os.truncate(path, end or item_position(0, 2000) + 30)
        with pytest.raises(StoreIOError, match="another process cut it"):
            store.query_key("T", asked if many else "k1")
        os.truncate(path, size)


def test_wherever_an_index_file_is_cut_the_answer_is_right_or_an_error(tmp_path: Path) -> None:
    """Chains of one item and of many, in five slots, the last item included."""
    names = [f"k{number % 9}" for number in range(20)]
    with open_small(tmp_path, maxHashSlotNum=5, maxIndexNum=60) as store:
        store.put_many([Message("T", b"x", keys=[name], properties={}) for name in names])
        right = {name: store.query_key("T", name) for name in [*names, "absent"]}
        path = next((tmp_path / "index").iterdir())
        raw = path.read_bytes()
        answered = 0
        for end in range(item_position(0, 5), item_position(45, 5), 3):
            os.truncate(path, end)
            for name, wanted in right.items():
                try:
                    assert store.query_key("T", name) == wanted
                    answered += 1
                except StoreIOError as error:
                    assert "another process cut it" in str(error)  # noqa: PT017 - either is right
            path.write_bytes(raw)
            store._keys.forget("")
        assert answered


@settings(max_examples=25)
@given(data=st.data())
def test_an_index_that_lies_is_answered_as_record_after_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("lies")
    with open_small(root, maxHashSlotNum=5, maxIndexNum=60) as store:
        store.put_many([Message("T", b"x", queue_id=0, keys=["a", f"k{number}"]) for number in range(12)])
        assert len(store.query_key("T", "a")) == 12
        path = next((root / "index").iterdir())
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(40, item_position(40, 5)))
            raw[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0xFF, raw[at] ^ 1]))
        with path.open("r+b") as file:
            file.write(raw)
        for name in ("a", "k3", "absent"):
            for limit in (1, 32):
                wanted = followed(store, "T", name, limit)
                assert store.query_key("T", name, limit) == wanted
                assert store.query_key("T", [name], limit) == {name: wanted}
