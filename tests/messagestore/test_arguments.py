"""A wrong argument of a public call is a `UsageError` of one line, and never a wrong answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import StoreClosedError, UsageError
from rmqtool.messagestore.messages import AppendContext, PutStatus
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

M = Message("T", b"body", queue_id=0, keys=["k"])
WRONG: dict[str, Callable[[Any], Any]] = {
    "topic in a list": lambda store: store.get(["T"], 0, 0),
    "no topic": lambda store: store.get(None, 0, 0),
    "topic in bytes": lambda store: store.get(b"T", 0, 0),
    "queue in text": lambda store: store.get("T", "0", 0),
    "offset in text": lambda store: store.get("T", 0, "min"),
    "offsets": lambda store: store.get("T", 0, np.array([1, 2])),
    "offset with a fraction": lambda store: store.get("T", 0, 1.5),
    "limit in text": lambda store: store.get("T", 0, 0, limit="5"),
    "wait in text": lambda store: store.get("T", 0, 1, wait="1"),
    "tags in a list": lambda store: store.get("T", 0, 0, tags=["A"]),
    "tags are a number": lambda store: store.get("T", 0, 0, tags=5),
    "sql92 is a number": lambda store: store.get("T", 0, 0, sql92=5),
    "table of a number": lambda store: store.get_table(5, 0, 0),
    "table, limit in text": lambda store: store.get_table("T", 0, 0, limit="a"),
    "table, columns in text": lambda store: store.get_table("T", 0, columns="body"),
    "raw, queue in text": lambda store: store.get_raw("T", "x", 0),
    "key, topic a number": lambda store: store.query_key(5, "k"),
    "key a number": lambda store: store.query_key("T", 5),
    "keys numbers": lambda store: store.query_key("T", [1, 2]),
    "key in bytes": lambda store: store.query_key("T", b"k"),
    "key, no topic": lambda store: store.query_key(None, "k"),
    "time in words": lambda store: store.offset_by_time("T", 0, timestamp="now"),
    "time, topic a number": lambda store: store.offset_by_time(5, 0, 0),
    "bounds, topic in a list": lambda store: store.offsets(["T"], 0),
    "bounds, queue in text": lambda store: store.offsets("T", "0"),
    "place in text": lambda store: store.message_at("0"),
    "put of text": lambda store: store.put("T"),
    "put of a dictionary": lambda store: store.put({"topic": "T"}),
    "put of nothing": lambda store: store.put(None),
    "async put of text": lambda store: store.put_async("x"),
    "a batch with fewer contexts": lambda store: store.put_batch([M, M], contexts=[AppendContext()]),
    "columns of a generator of numbers": lambda store: store.get_table("T", 0, columns=iter([5])),
    "many are one": lambda store: store.put_many(M),
    "many are texts": lambda store: store.put_many([M, "a"]),
    "many of a generator are texts": lambda store: store.put_many(one for one in (M, "a")),
    "a batch of a generator of numbers": lambda store: store.put_batch(iter([5])),
    "many are a text": lambda store: store.put_many("abc"),
    "many are a dictionary": lambda store: store.put_many({"topic": ["T"]}),
    "a batch of one": lambda store: store.put_batch(M),
    "topic of a number": lambda store: store.topics.set(5),
    "queues in text": lambda store: store.topics.set("N", read_queues="1"),
    "attributes in a list": lambda store: store.topics.set("N", attributes=["x"]),
    "group of a number": lambda store: store.consumer(5, "T"),
    "strategy of a number": lambda store: store.consumer("g", "T", strategy=5),
    "consumer of a number": lambda store: store.consumer("g", 5),
    "handler in text": lambda store: store.consumer("g", "T", on_message="x"),
    "commit in text": lambda store: store.commit_offset("g", "T", 0, "5"),
    "commit of a number's group": lambda store: store.commit_offset(5, "T", 0, 5),
    "settings of a number's group": lambda store: store.groups.set(5),
    "tries in text": lambda store: store.groups.set("g", retry_max="x"),
    "level in text": lambda store: store.send_delayed(M, "1"),
    "delay of text": lambda store: store.send_delayed("x", 1),
    "transaction of text": lambda store: store.transaction("x"),
    "half of text": lambda store: store.prepare_transaction("x"),
    "listener in text": lambda store: store.listen_to_transactions("x"),
    "text sent back": lambda store: store.send_back("g", "x"),
    "port in text": lambda store: store.listen(port="x"),
    "port too large": lambda store: store.listen(port=99_999),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    with open_small(tmp_path_factory.mktemp("arguments") / "store", deliver=False) as made:
        made.put(M)
        yield made


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_said_in_one_line(store: MessageStore, wrong: Callable[[Any], Any]) -> None:
    end = store.end
    with pytest.raises(UsageError) as error:
        wrong(store)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 120
    assert store.end == end


def test_the_line_names_argument_value_and_type(store: MessageStore) -> None:
    with pytest.raises(UsageError, match=r"^topic is \['T'\], not a string$"):
        store.get(["T"], 0, 0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^key is 5, not a string or strings$"):
        store.query_key("T", 5)  # type: ignore[call-overload]


@pytest.mark.parametrize("path", [5, None, b"store"])
def test_a_path_is_a_path(path: Any) -> None:
    with pytest.raises(UsageError, match="not a string or a path"):
        MessageStore.open(path)


@pytest.mark.parametrize("number", [True, np.int64(0), np.uint8(0)])
def test_what_counts_as_a_number_is_one(store: MessageStore, number: Any) -> None:
    assert store.get("T", 0, number, wait=np.float32(0)) is not None
    assert store.get_table("T", number, 0) is not None


@pytest.mark.parametrize("integer", [np.uint8, np.int16, np.int64])
def test_integers_of_numpy_do_not_overflow(store: MessageStore, integer: Callable[[int], Any]) -> None:
    """Bytes of 20 entries are more than an uint8 takes; the counters of the store became such numbers."""
    store.put_many([Message("N", b"%d" % number, queue_id=0) for number in range(60)])
    found = store.get("N", integer(0), integer(40), integer(20))
    assert [one.body for one in found.messages] == [b"%d" % number for number in range(40, 60)]
    assert type(found.next_begin_offset) is int
    assert store.get_table("N", integer(0), integer(40), integer(20)).num_rows == 20
    assert len(store.get_raw("N", integer(0), integer(59), integer(1)).records) == 1
    assert type(store.stats().get.messages) is int


def test_keys_may_be_any_that_can_be_gone_through(store: MessageStore) -> None:
    found = store.query_key("T", (one for one in ["k"]))  # type: ignore[call-overload]
    assert [one.body for one in found["k"]] == [b"body"]
    assert list(store.query_key("T", {"k": 1})) == ["k"]  # type: ignore[call-overload]


def test_choices_are_held_against_the_names(tmp_path: Path) -> None:
    open_small(tmp_path / "store").close()
    with pytest.raises(UsageError, match=r"^recovery is 'Broker', not refuse or broker$"):
        MessageStore.open(tmp_path / "store", recovery="Broker")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^settings: \['a'\] is not a mapping"):
        MessageStore.open(tmp_path / "store", config=["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("release", ["9.9.9", "3.2.6"])
def test_a_release_that_is_not_known_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, release: str
) -> None:
    open_small(tmp_path / "store", release).close()
    assert [one.getMessage() for one in caplog.records] == [
        f"release {release} is not known, the newest known is 5.3.3"
    ]


@pytest.mark.parametrize("release", ["x", "", "5.3.3-SNAPSHOT", "5..3"])
def test_a_release_is_numbers(tmp_path: Path, release: str) -> None:
    with pytest.raises(UsageError, match="not numbers between dots"):
        open_small(tmp_path / "store", release)


def test_an_empty_path_is_not_where_the_process_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="the path of the store is empty"):
        MessageStore.open("", create=True)
    assert not list(tmp_path.iterdir())


def test_columns_may_be_those_of_a_generator(store: MessageStore) -> None:
    assert store.get_table("T", 0, columns=(one for one in ["topic"])).column_names == ["topic"]  # type: ignore[arg-type]


def test_limits_of_any_size(store: MessageStore) -> None:
    huge = 1 << 80
    assert list(map(len, store.query_key("T", ["k", "l"], huge, begin=-huge, end=huge).values())) == [1, 0]
    assert len(store.query_key("T", "k", huge, begin=-huge, end=huge)) == 1


@pytest.mark.parametrize(
    "context",
    [
        AppendContext(queue_offset=-1),
        AppendContext(queue_offset=1 << 63),
        AppendContext(properties="a\x01b\x02"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_context_that_no_record_has(store: MessageStore, context: AppendContext) -> None:
    assert store.put(M, context=context).status is PutStatus.MESSAGE_ILLEGAL
    assert store.offsets("T", 0) == (0, 1)


@pytest.mark.parametrize("queue_id", [-1, 1 << 31, "0"])
def test_a_context_asks_no_topic_but_what_a_queue_can_be(store: MessageStore, queue_id: Any) -> None:
    before = store.queues()
    ack = store.put(Message("T", b"", queue_id=queue_id), context=AppendContext())
    assert ack.status is PutStatus.MESSAGE_ILLEGAL
    assert store.queues() == before


def test_a_closed_store_takes_not_even_nothing(tmp_path: Path) -> None:
    store = open_small(tmp_path / "store")
    store.close()
    for call in (store.put_many, store.put_batch):
        with pytest.raises(StoreClosedError):
            call([])


def test_a_path_with_a_nul_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has a NUL"):
        MessageStore.open(tmp_path / "a\0b", create=True)
