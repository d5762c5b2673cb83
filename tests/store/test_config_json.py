from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fixtures
from rmqtool.store.config_json import (
    ParsedConfig,
    ParseState,
    load_config_pair,
    load_json_config,
    parse_config,
    parse_table,
    topics_of,
)
from rmqtool.store.layout import FileKind, Store
from tests.disks import refuse

EXAMPLE = b"""{
\t"offsetTable":{
\t\t"TopicTest@groupA":{0:250,1:251
\t\t},
\t\t"%RETRY%groupA@groupA":{0:0
\t\t}
\t}
}"""


def test_the_form_that_brokers_write():
    data, state, detail = parse_config(EXAMPLE)
    assert data == {
        "offsetTable": {"TopicTest@groupA": {"0": 250, "1": 251}, "%RETRY%groupA@groupA": {"0": 0}}
    }
    assert (state, detail) == (ParseState.FASTJSON, None)


def test_published_example():
    data, state, _ = parse_config(
        b'{"offsetTable":{"%RETRY%ConsumerA@ConsumerA":{0:0},"Topic-01@ConsumerA":{0:3,1:2,2:2,3:3}}}'
    )
    assert state is ParseState.FASTJSON
    assert sum(data["offsetTable"]["Topic-01@ConsumerA"].values()) == 10


@pytest.mark.parametrize("name", [name for name in fixtures.golden_names() if name.startswith("b")])
def test_every_real_file_is_undamaged(golden, name):
    found = golden(name)
    for root in found.stores.values():
        store = Store.open(root)
        for file in store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK, FileKind.TIMERMETRICS):
            parsed = load_json_config(file.location)
            assert parsed.state in (ParseState.STRICT, ParseState.FASTJSON), (file.path, parsed.detail)
            assert parsed.detail is None
            assert isinstance(parsed.data, dict)


@pytest.mark.parametrize(
    ("raw", "data", "state", "detail"),
    [
        (b'{"a":1}', {"a": 1}, "strict", None),
        (b'{"a":1}\n\n', {"a": 1}, "strict", None),
        (b'{"x{0:1":{-3 :1}}', {"x{0:1": {"-3": 1}}, "fastjson", None),
        (b'{"a":1}}xx', {"a": 1}, "lenient", "3 bytes follow"),
        (b'{"a":1}{"b":2}', {"a": 1}, "lenient", "7 bytes follow"),
        (b'{"a":1}\0\0\0', {"a": 1}, "lenient", "3 NUL bytes"),
        (b"\xef\xbb\xbf{}", {}, "lenient", "byte order mark"),
        (b'{"a":1,"a":2}', {"a": 2}, "lenient", "duplicate keys: 'a'"),
        (b'{"t":{0:1,0:2}}', {"t": {"0": 2}}, "lenient", "duplicate keys: '0'"),
        (b'{"a":1,}', {"a": 1}, "lenient", "is not JSON"),
        (b"{'a':1}", {"a": 1}, "lenient", "is not JSON"),
        (b"{a:1}", {"a": 1}, "lenient", "is not JSON"),
        (b'{"a":"\xff"}', {"a": "\ufffd"}, "lenient", "not UTF-8 at byte 6"),
        (b"", None, "empty", None),
        (b" \n", None, "empty", "2 blank bytes"),
        (bytes(4096), None, "empty", "4096 NUL"),
        (b'{"a":{"b":1', None, "unparsable", "is not JSON"),
        (b'{"a":1', None, "unparsable", "is not JSON"),
        (b"[1]", None, "unparsable", "holds a list"),
        (b"null", None, "unparsable", "holds null, not an object"),
        (b"7", None, "unparsable", "holds a number, not an object"),
        (b'x{"a":1}', None, "unparsable", "is not JSON"),
        (b'{"a":\0\0\0\0', None, "unparsable", "NUL"),
        (b"[" * 100_000, None, "unparsable", "is not JSON"),
        (b'{"a":' * 100_000, None, "unparsable", "is not JSON"),
    ],
)
def test_damage(raw, data, state, detail):
    parsed = parse_config(raw)
    assert (parsed.data, parsed.state) == (data, state)
    assert parsed.state.has_data is (data is not None)
    assert parsed.detail is None if detail is None else detail in parsed.detail


def test_every_cut_of_a_file_is_seen():
    for end in range(len(EXAMPLE)):
        assert parse_config(EXAMPLE[:end]).state in (ParseState.UNPARSABLE, ParseState.EMPTY), EXAMPLE[:end]


keys = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, values, max_size=4))
def test_any_json_object_comes_through(data):
    parsed = parse_config(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if parsed.state is ParseState.STRICT:
        assert parsed.data == data


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text("{}[]:,\"'0a\\ \n\0", max_size=40).map(str.encode))
def test_any_bytes_give_a_state(raw):
    parsed = parse_config(raw)
    assert isinstance(parsed.data, dict) is parsed.state.has_data


def test_files_and_their_bak(tmp_path):
    path = tmp_path / "topics.json"
    assert load_json_config(path) == (None, ParseState.MISSING, None)
    assert load_config_pair(path).chosen == "empty"
    assert load_config_pair(path).data == {}
    bak = tmp_path / "topics.json.bak"
    bak.write_bytes(b'{"old":1}')
    for content in (None, b"", b'{"a":'):
        if content is not None:
            path.write_bytes(content)
        pair = load_config_pair(path)
        assert (pair.chosen, pair.data) == ("bak", {"old": 1})
    path.write_bytes(b'{"new":1}')
    assert load_config_pair(path).data == {"new": 1}


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    assert load_json_config(tmp_path / "fifo").state is ParseState.UNREADABLE
    assert load_json_config(tmp_path).state is ParseState.UNREADABLE
    path = tmp_path / "topics.json"
    path.write_bytes(b"{}")

    refuse(monkeypatch, "open")
    parsed = load_json_config(path)
    assert parsed.state is ParseState.UNREADABLE
    assert "Permission denied" in parsed.detail


def test_topics(golden):
    found = golden("b533-full")
    topics = topics_of(load_json_config(found.path / "config/topics.json").data)
    for name, expected in found.expected["topicConfig"].items():
        one = topics[name]
        assert (one.read_queue_nums, one.write_queue_nums) == (expected["read"], expected["write"])
        assert (one.perm, one.order, one.attributes) == (
            expected["perm"],
            expected["order"],
            expected["attributes"],
        )
    assert topics["TopicTx"].attributes == {"message.type": "TRANSACTION"}
    assert topics["TopicTx"].queue_type == "SimpleCQ"
    compact = topics_of(load_json_config(golden("b533-compaction").path / "config/topics.json").data)
    assert compact["TopicCompact"].cleanup_policy == "COMPACTION"


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"topicConfigTable": None}, {"topicConfigTable": []}, {"topicConfigTable": {"T": 1}},
     {"topicConfigTable": {"T": {"perm": "6", "attributes": 1, "readQueueNums": True}}}],
)  # fmt: skip
def test_tables_of_a_wrong_shape(data):
    topics = topics_of(data)
    assert all((one.perm, one.read_queue_nums, one.attributes) == (6, 16, {}) for one in topics.values())
    assert len(topics) == (1 if data and isinstance(data, dict) and "perm" in str(data) else 0)


def test_batch_queue_topics():
    (topic,) = topics_of(
        {"topicConfigTable": {"T": {"attributes": {"queue.type": "BatchCQ"}, "perm": 2}}}
    ).values()
    assert (topic.queue_type, topic.readable, topic.writeable) == ("BatchCQ", False, True)


@pytest.mark.parametrize(
    ("text", "state", "data"),
    [
        ('{"a":1e999}', "lenient", {"a": None}),
        ('{"a":-1e999,"b":1' + 40 * "0" + "}", "lenient", {"a": None, "b": None}),
        ("{'a':1e999,}", "lenient", {"a": None}),
        ("{a:NaN}", "lenient", {"a": None}),
        ('{"a":1.5}', "strict", {"a": 1.5}),
    ],
)
def test_numbers_that_json_lacks(text: str, state: str, data: dict[str, object]) -> None:
    parsed = parse_config(text.encode())
    assert (parsed.state, parsed.data) == (state, data)


@pytest.mark.parametrize("key", ['"a"', "'a'"])
@pytest.mark.parametrize(("levels", "state"), [(100, None), (200, "unparsable"), (900, "unparsable")])
def test_nesting_is_bounded(key: str, levels: int, state: str | None) -> None:
    parsed = parse_config((f"{{{key}:" * levels + "1" + "}" * levels).encode())
    assert parsed.state == (state or ("strict" if key == '"a"' else "lenient"))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Gets the bytes of each table that is parsed."""
    asked: list[bytes] = []

    def parse(raw: bytes) -> ParsedConfig:
        asked.append(raw)
        return parse_config(raw)

    monkeypatch.setattr("rmqtool.store.config_json.parse_config", parse)
    return asked


def test_the_same_bytes_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 topics a plan did it thirty times; others, and other releases, have answers of their own."""
    asked = counted(monkeypatch)
    raw = json.dumps({"topicConfigTable": {f"T{number}": {"perm": 6} for number in range(100)}}).encode()
    first = parse_table(raw, "topics.json")
    assert parse_table(bytes(bytearray(raw)), "topics.json") == first
    assert parse_table(raw, "topics.json", before_5=True) == first
    assert asked == [raw]
    assert parse_table(raw.replace(b'T7"', b'T_"'), "topics.json").data != first.data
    wrong = raw.replace(b'"perm": 6', b'"perm": "x"')
    assert parse_table(wrong, "other.json").state is ParseState.STRICT
    assert parse_table(wrong, "topics.json").state is ParseState.UNPARSABLE


def test_who_changes_what_was_parsed_changes_it_for_nobody_else() -> None:
    raw = b'{"offsetTable": {"T@g": {"0": 5}}}'
    parse_table(raw, "consumerOffset.json").data["offsetTable"].clear()
    assert parse_table(raw, "consumerOffset.json").data == json.loads(raw)


def test_what_is_remembered_of_tables_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    first, other = (json.dumps({"a": [number, "x" * (9 << 20)]}).encode() for number in range(2))
    for raw in (first, first, other, first):
        parse_table(raw, "other.json")
    assert asked == [first, other, first]
