"""Messages as Arrow columns are stored as the same messages one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqtool import Message
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import Ack, PutStatus
from rmqtool.store.access import open_source
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, open_small

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {
        "topic": f"Topic{number % 3}" if number % 7 else "L" * 127,
        "body": b"%d" % number * (number % 50),
        "queue_id": number % 4,
        "tags": None if number % 3 else f"Tag{number}",
        "keys": [f"key-{number}", "all"][: number % 3],
        "uniq_key": f"id-{number}",
        "flag": number - 50,
        "born_timestamp": 1_700_000_000_000 + number,
        "properties": [("color", "\N{SNOWMAN}"), ("__CRC32#", "7"), ("size", "L")][: number % 5],
    }
    for number in range(150)
]
SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "body": pa.binary(),
        "queue_id": pa.int32(),
        "tags": pa.string(),
        "keys": pa.list_(pa.string()),
        "uniq_key": pa.string(),
        "flag": pa.int64(),
        "born_timestamp": pa.int64(),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)


def as_message(row: dict[str, Any]) -> Message:
    fields = {name: value for name, value in row.items() if name not in {"topic", "body", "properties"}}
    return Message(row["topic"], row["body"], properties=dict(row["properties"]), **fields)


@pytest.mark.share
@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_columns_and_messages_are_the_same_bytes(tmp_path: Path, release: str, crc: bool) -> None:
    logs, answers = [], []
    for name in ("columns", "messages", "each"):
        settings = {"enabledAppendPropCRC": crc}
        with open_small(tmp_path / name, release, **settings) as store:
            if name == "columns":
                answers.append(store.put_many(pa.Table.from_pylist(ROWS, SCHEMA)).to_pylist())
            elif name == "messages":
                acks = store.put_many(map(as_message, ROWS))
                answers.append([ack._asdict() for ack in acks])
            else:
                answers.append([store.put(as_message(row))._asdict() for row in ROWS])
            records = []
            for topic, queue_id in store.queues():
                records += [one.raw for one in store.get(topic, queue_id, 0, 64).messages]
            end = -20 if crc and release == "5.3.3" else None  # the time of storing counts there
            logs.append([(one[:56], one[64:end]) for one in records])
    assert logs[0] == logs[1] == logs[2]
    same = ("status", "topic", "queue_id", "queue_offset", "physical_offset", "uniq_key")
    for answer in answers[1:]:
        for one, other in zip(answers[0], answer, strict=True):
            assert {name: one[name] for name in same} == {name: other[name] for name in same}


@pytest.mark.parametrize("release", RELEASES)
def test_a_list_of_plain_messages_is_the_same_bytes(tmp_path: Path, release: str) -> None:
    """Long enough to go through columns, against one put for each."""
    given = [
        Message(
            "T" if number % 3 else "支付",
            bytes(number),
            queue_id=None if number % 2 else 1,
            tags=[None, "TagA", ""][number % 3],
            keys=[(), ["one"], ["two", "三"]][number % 3],
            uniq_key=f"id-{number}",
            flag=-number,
            born_timestamp=number + 1,
        )
        for number in range(40)
    ]
    logs, answers = [], []
    for name in ("list", "each"):
        with open_small(tmp_path / name, release) as store:
            acks = store.put_many(given) if name == "list" else [store.put(one) for one in given]
            answers.append(acks)
            raws = [one.raw for ack in acks if (one := store.message_at(ack.physical_offset))]
            logs.append([(one[:56], one[64:]) for one in raws])  # all but the time of storing
    assert answers[0] == answers[1]
    assert len(logs[0]) == len(given)
    assert logs[0] == logs[1]
    assert {ack.status for ack in answers[0]} == {PutStatus.PUT_OK}


@pytest.mark.share
@pytest.mark.parametrize(
    "odd",
    [
        Message("T", b"", tags="a\x02b"),
        Message("T", b"", keys=["a\x02b"]),
        Message("T", b"", uniq_key="a\x02b"),
        Message("T", bytes(101)),
        Message("", b""),
        Message("Closed", b""),
        Message("T", b"", queue_id=9),
        Message("T", b"", flag=1 << 40),
        Message("\ud800", b""),
        Message("T", b"", properties={"a": "b\x02"}),
        Message("SCHEDULE_TOPIC_XXXX", b"", properties={"DELAY": "abc"}),
        Message("T", b"", queue_id=1.5),  # type: ignore[arg-type]
        Message("T", b"", flag=1.5),  # type: ignore[arg-type]
        Message("T", b"", born_timestamp=1e12),  # type: ignore[arg-type]
        Message("T", b"", tags=b"TagA"),  # type: ignore[arg-type]
        Message("T", b"", tags=["TagA"]),  # type: ignore[arg-type]
        Message("T", b"", uniq_key=b"id"),  # type: ignore[arg-type]
        Message("T", b"", properties={"WAIT": False}),  # type: ignore[dict-item]
        Message("T", b"", properties={b"name": b"value"}),  # type: ignore[dict-item]
        Message("T", b"", properties={"a\x01b": "c"}),
        Message("T", b"", properties={"a\x02b": "c"}),
        Message(["T"], b""),  # type: ignore[arg-type]
        Message("T", b"", keys=iter(["k"])),  # type: ignore[arg-type]
    ],
    ids=lambda one: repr(one)[8:60],
)
def test_an_odd_message_is_answered_as_by_itself(tmp_path: Path, odd: Message) -> None:
    """In a list that is long enough for columns, and in columns."""
    with open_small(tmp_path / "store", maxMessageSize=100) as store:
        store.topics.set("Closed", perm=4)
        alone = store.put(odd)
        assert alone.status is PutStatus.MESSAGE_ILLEGAL
        acks = store.put_many([Message("T", b"")] * 20 + [odd] + [Message("T", b"")] * 20)
        place = {"queue_id", "queue_offset", "physical_offset", "uniq_key"}
        assert [one.status for one in acks[:20] + acks[21:]] == [PutStatus.PUT_OK] * 40
        assert without(acks[20], place) == without(alone, place)
        numbers = {type(one) for one in (odd.queue_id, odd.flag, odd.born_timestamp)}
        texts = (odd.topic, odd.tags, odd.uniq_key, *(odd.properties or {}), *(odd.properties or {}).values())
        typed = float not in numbers and all(isinstance(one, str | None) for one in texts)
        typed &= isinstance(odd.keys, Sequence)
        if odd.flag == 0 and odd.topic != "\ud800" and typed:
            row = {"topic": odd.topic, "body": odd.body, "tags": odd.tags, "keys": list(odd.keys)}
            row |= {"uniq_key": odd.uniq_key, "queue_id": odd.queue_id}
            row["properties"] = list((odd.properties or {}).items())
            answer = store.put_many(pa.Table.from_pylist([row], SCHEMA))
            assert answer["status"].to_pylist() == [alone.status]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("text", ["v" * 40_000, "é" * 20_000, "v\x02" * 20_000])
def test_long_properties_are_answered_as_by_themselves(tmp_path: Path, release: str, text: str) -> None:
    with open_small(tmp_path / "store", release, mappedFileSizeCommitLog=1 << 20) as store:
        alone = store.put(Message("T", b"", tags=text))
        answer = store.put_many(pa.table({"topic": ["T", "T"], "body": [b"", b""], "tags": [text, "a"]}))
        assert answer["status"].to_pylist() == [alone.status, "PUT_OK"]
        assert alone.status is not PutStatus.PUT_OK


def test_a_born_time_in_front_of_1970_stays(tmp_path: Path) -> None:
    """Columns say with a time below 0 that it is that of the append."""
    born = [-1, None, -(1 << 63), 5]
    table = {"topic": ["T"] * 4, "body": [b""] * 4, "queue_id": [0] * 4, "born_timestamp": born}
    with open_small(tmp_path / "from", clock=lambda: 77) as store:
        assert store.put_many(pa.table(table))["status"].to_pylist() == [PutStatus.PUT_OK] * 4
        assert store.get_table("T", 0)["born_timestamp"].to_pylist() == [-1, 77, -(1 << 63), 5]
    target = tmp_path / "some.replay"
    assert rmq("export", tmp_path / "from", "--to", target).exit_code == 0
    with open_small(tmp_path / "to") as store:
        assert list(store.loader().load(open_source(target, "pread"))) == [[], []]
        assert store.get_table("T", 0)["born_timestamp"].to_pylist() == [-1, 77, -(1 << 63), 5]


def without(ack: Ack, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in ack._asdict().items() if name not in names}


def test_queues_in_turn_ids_and_refusals(tmp_path: Path) -> None:
    large = {
        "mappedFileSizeCommitLog": 1 << 24,
        "mappedFileSizeConsumeQueue": 1 << 20,
        "maxIndexNum": 1 << 20,
    }
    with open_small(tmp_path / "store", maxMessageSize=100, **large) as store:
        store.topics.set("Closed", perm=4)
        topics = ["T", "T", "Closed", "T", "T", "", "T", "T"]
        bodies = [b"0", b"1", b"2", bytes(101), None, b"5", b"6", b"7"]
        answer = store.put_many(pa.table({"topic": topics, "body": bodies, "tags": ["a"] * 8}))
        assert answer["status"].to_pylist() == [
            "PUT_OK", "PUT_OK", "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL", "PUT_OK", "MESSAGE_ILLEGAL", "PUT_OK",
            "PUT_OK",
        ]  # fmt: skip
        kept = answer.filter(pa.compute.equal(answer["status"], "PUT_OK"))
        assert len(set(answer["uniq_key"].to_pylist())) == 8
        assert kept["physical_offset"].to_pylist() == sorted(kept["physical_offset"].to_pylist())
        for row in kept.to_pylist():
            found = store.message_at(row["physical_offset"])
            assert found is not None
            assert (found.uniq_key, found.queue_id, found.queue_offset, found.tags) == (
                row["uniq_key"], row["queue_id"], row["queue_offset"], "a",
            )  # fmt: skip
        many = store.put_many(pa.table({"topic": ["U"] * 70_000, "body": [b""] * 70_000}))
        assert len(set(many["uniq_key"].to_pylist())) == 70_000
        assert set(many["queue_id"].to_pylist()) == {0, 1, 2, 3}
        assert many["queue_offset"].to_pylist()[-1] == 17_499


@pytest.mark.parametrize(
    "table",
    [
        {"topic": ["T"]}, {"body": [b""]}, {"topic": ["T"], "body": [b""], "tag": ["x"]},
        {"topic": [None], "body": [b""]}, {"topic": ["T"], "body": [1.5]},
        {"topic": ["T"], "body": [b""], "flag": [1 << 40]},
        {"topic": ["T"], "body": [b""], "uniq_key": [b"\xff"]}, {"topic": [b"\xff"], "body": [b""]},
        {"topic": ["T"], "body": [b""], "keys": [[b"\xff"]]},
        {"topic": ["T"], "body": [b""], "properties": [["name", "value"]]},
    ],
)  # fmt: skip
def test_tables_that_are_none_of_messages(tmp_path: Path, table: dict[str, list[Any]]) -> None:
    with open_small(tmp_path / "store") as store:
        with pytest.raises(UsageError):
            store.put_many(pa.table(table))
        assert not store.queues()


def test_a_column_stands_twice(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["T"]), *[pa.array([b""])] * 2], ["topic", "body", "body"])
    with open_small(tmp_path / "store") as store, pytest.raises(UsageError, match="duplicate column body"):
        store.put_many(table)


FURTHER = {"enableMultiDispatch": True, "enableLmq": True}
"""with which tables that have properties are put message by message"""


@pytest.mark.parametrize("settings", [{}, FURTHER], ids=["columns", "singly"])
def test_a_null_among_keys_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    """It would be stored without any of its keys."""
    keys = [["one", None], None, [], ["one", "two"]]
    rows = {"topic": ["T"] * 4, "body": [b""] * 4, "queue_id": [0] * 4, "keys": keys}
    table = pa.table({**rows, "properties": pa.nulls(4)})
    with open_small(tmp_path / "store", **settings) as store:
        assert store.put_many(table)["status"].to_pylist() == [
            "MESSAGE_ILLEGAL",
            "PUT_OK",
            "PUT_OK",
            "PUT_OK",
        ]
        assert [one.queue_offset for one in store.query_key("T", "one")] == [2]


@pytest.mark.parametrize("settings", [{}, FURTHER], ids=["columns", "singly"])
def test_properties_may_be_of_bytes(tmp_path: Path, settings: dict[str, Any]) -> None:
    rows = {"topic": ["T"], "body": [None], "queue_id": [0], "tags": [b"TagA"], "keys": [b"one two"]}

    def table(value: bytes) -> pa.Table:
        properties = pa.array([[(b"name", value)]], pa.map_(pa.binary(), pa.binary()))
        return pa.table({**rows, "properties": properties})

    with open_small(tmp_path / "store", **settings) as store:
        store.put_many(table(b"value"))
        found = store.get("T", 0, 0).messages[0]
        assert (found.properties["name"], found.tags, found.keys) == ("value", "TagA", ["one", "two"])
        with pytest.raises(UsageError, match="column properties: Invalid UTF8"):
            store.put_many(table(b"\xff"))


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_text_may_be_views(tmp_path: Path, view: pa.DataType, repeated: bool) -> None:
    """As those of polars are; its categories are a dictionary of views, which Arrow does not decode."""

    def column(*texts: str) -> pa.Array:
        given = pa.array(texts).cast(view)
        return pa.DictionaryArray.from_arrays(range(len(texts)), given) if repeated else given

    table = {
        "topic": column("T", "U"),
        "body": column("x", ""),
        "tags": column("a", "b"),
        "keys": column("k", "l"),
    }
    with open_small(tmp_path / "store") as store:
        answer = store.put_many(pa.table(table))
        assert answer["topic"].to_pylist() == ["T", "U"]
        found = [store.message_at(at) for at in answer["physical_offset"].to_pylist()]
        assert [(one.topic, one.body, one.tags, one.keys) for one in found if one is not None] == [
            ("T", b"x", "a", ["k"]),
            ("U", b"", "b", ["l"]),
        ]


def test_the_index_of_a_frame_is_no_column(tmp_path: Path) -> None:
    """Under this name pandas hands over an index that has none."""
    table = pa.table({"topic": ["T"], "body": [b""], "__index_level_0__": [7]})
    with open_small(tmp_path / "store") as store:
        assert store.put_many(table)["status"].to_pylist() == ["PUT_OK"]


def test_what_arrow_makes_no_table_of(tmp_path: Path) -> None:
    """As a column of a frame is."""
    with open_small(tmp_path / "store") as store, pytest.raises(UsageError, match="messages are no table"):
        store.put_many(pa.chunked_array([["T"]]))


def test_what_arrow_makes_a_table_of(tmp_path: Path) -> None:
    batch = pa.record_batch({"topic": ["T"], "body": [b"x"], "queue_id": [0]})
    with open_small(tmp_path / "store") as store:
        for given in (batch, pa.RecordBatchReader.from_batches(batch.schema, [batch])):
            assert store.put_many(given)["status"].to_pylist() == ["PUT_OK"]
        assert store.offsets("T", 0) == (0, 2)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("form", ["plain", "dictionary", "slice"])
def test_text_may_have_any_type(tmp_path: Path, kind: pa.DataType, form: str) -> None:
    texts = {
        "topic": ["A", "B", "A"],
        "body": ["x", "", "three"],
        "tags": ["t", None, "\N{SNOWMAN}"],
        "keys": ["k", "k l", None],
        "uniq_key": ["1", "2", "3"],
    }
    wanted = [(*row, number) for number, row in enumerate(zip(*texts.values(), strict=True))]
    columns = {name: pa.array([*given, *given], kind).slice(3) for name, given in texts.items()}
    if form != "slice":
        columns = {name: pa.concat_arrays([one, one])[:3] for name, one in columns.items()}
    if form == "dictionary":
        columns = {name: one.dictionary_encode() for name, one in columns.items()}
    with open_small(tmp_path / "store") as store:
        answer = store.put_many(pa.table({**columns, "queue_id": [0, 0, 0]}))
        assert answer["status"].to_pylist() == ["PUT_OK"] * 3
        assert (answer["topic"].to_pylist(), answer["uniq_key"].to_pylist()) == (
            texts["topic"], texts["uniq_key"],
        )  # fmt: skip
        found = [store.message_at(at) for at in answer["physical_offset"].to_pylist()]
        seen = [
            (one.topic, one.body.decode(), one.tags, " ".join(one.keys) or None, one.uniq_key, number)
            for number, one in enumerate(found)
            if one is not None
        ]
        assert seen == wanted


def test_dictionaries_of_a_frame_are_properties(tmp_path: Path) -> None:
    """Arrow makes a struct of them, with every name in each."""
    rows = [{"color": "red"}, {"size": "L", "color": "blue"}, {}, None]
    table = pa.table({"topic": ["T"] * 4, "body": [b""] * 4, "queue_id": [0] * 4, "properties": rows})
    with open_small(tmp_path / "store") as store:
        assert store.put_many(table)["status"].to_pylist() == ["PUT_OK"] * 4
        found = [one.properties for one in store.get("T", 0, 0, 32).messages]
        assert [{name: one[name] for name in ("color", "size") if name in one} for one in found] == [
            row or {} for row in rows
        ]
        nothing = pa.table({"topic": ["T"], "body": [b""], "properties": pa.array([{}], pa.struct([]))})
        assert store.put_many(nothing)["status"].to_pylist() == ["PUT_OK"]


def test_a_table_without_columns_has_its_rows(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many([Message("T", b"", queue_id=0)] * 7)
        for none in ([], iter(())):
            assert store.get_table("T", 0, 2, columns=none).shape == (5, 0)  # type: ignore[arg-type]
