"""Messages by key and by time in the process that writes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from formats.index import key_hash
from rmqtool import Message
from rmqtool.errors import UsageError
from tests.messagestore.helpers import RELEASES, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("release", RELEASES)
def test_every_key_leads_to_its_messages(tmp_path: Path, release: str) -> None:
    """Several index files, of the last life and of this one, and the one that is written."""
    with open_small(tmp_path / "store", release) as store:
        store.put_many(traffic(0, 70))
    with open_small(tmp_path / "store", release) as store:
        for message in traffic(70, 70):
            store.put(message)
            one = message.keys[0]
            assert [found.keys for found in store.query_key(message.topic, one)] == [[one]]
        for topic in ("Topic0", "Topic1"):
            mine = [message for message in traffic(0, 140) if message.topic == topic]
            names = [message.keys[0] for message in mine] + [message.uniq_key or "" for message in mine]
            each = store.query_key(topic, [*names, "absent"])
            assert each.pop("absent") == []
            assert {name: [one.body for one in found] for name, found in each.items()} == {
                name: [message.body] for name, message in zip(names, mine * 2, strict=True)
            }
            for name in names:
                assert store.query_key(topic, name) == each[name]
                assert store.query_key("Other", name) == []


def test_the_newest_of_a_key_within_its_times(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        acks = [store.put(Message("T", b"%d" % number, keys=["same"])) for number in range(9)]
        times = [store.message_at(ack.physical_offset).store_timestamp for ack in acks]
        assert [one.body for one in store.query_key("T", "same", 3)] == [b"6", b"7", b"8"]
        assert [one.body for one in store.query_key("T", ["same"], 2)["same"]] == [b"7", b"8"]
        assert store.query_key("T", "same", begin=times[-1] + 1) == []
        assert len(store.query_key("T", "same", end=times[-1] + 1)) == 9


def test_a_key_with_the_hash_of_another_is_not_it(tmp_path: Path) -> None:
    assert key_hash("T", "Aa") == key_hash("T", "BB")
    with open_small(tmp_path / "store") as store:
        store.put_many([Message("T", b"first", keys=["Aa"]), Message("T", b"second", keys=["BB"])])
        assert [one.body for one in store.query_key("T", "Aa")] == [b"first"]
        assert {key: len(found) for key, found in store.query_key("T", ["Aa", "BB"]).items()} == {
            "Aa": 1,
            "BB": 1,
        }


@pytest.mark.parametrize("release", RELEASES)
def test_many_keys_in_one_call_are_those_of_single_calls(tmp_path: Path, release: str) -> None:
    """Several segments and index files; names with the same hash, of several bytes, in several topics."""
    chance = random.Random(release)
    names = [
        "Aa",
        "BB",
        "AaAa",
        "BBBB",
        "AaBB",
        "ключ",
        "鍵",
        "\U0001f511",
        *(f"k{number}" for number in range(20)),
    ]
    with open_small(tmp_path / "store", release) as store:
        store.put_many(
            [
                Message(f"T{number % 2}", b"%d" % number, keys=chance.sample(names, chance.randrange(4)))
                for number in range(300)
            ]
        )
        times = sorted(one.store_timestamp for one in store.query_key("T0", "k1", 300))
        for limit in (0, 1, 3, 300):
            for begin, end in ((0, None), (times[0], times[-1] + 1), (0, times[0]), (times[-1] + 1, None)):
                for some in (names, names[:3]):
                    found = store.query_key("T1", [*some, "absent"], limit, begin=begin, end=end)
                    assert list(found) == [*some, "absent"]
                    for name, messages in found.items():
                        assert messages == store.query_key("T1", name, limit, begin=begin, end=end), name


def test_without_an_index_there_is_no_answer(tmp_path: Path) -> None:
    with (
        open_small(tmp_path / "store", messageIndexEnable=False) as store,
        pytest.raises(UsageError, match="messageIndexEnable"),
    ):
        store.query_key("T", "key")
