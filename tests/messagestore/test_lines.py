"""Messages from lines of text: what is one, and what is said of others."""

from __future__ import annotations

import json

import pytest

from rmqtool.errors import UsageError
from rmqtool.messagestore.lines import CsvHeader, LineError, message_of_json, parse_host

WHOLE = {
    "topic": "T", "queue_id": 3, "flag": -1, "tags": "A", "keys": ["a", "b"], "uniq_key": "u",
    "properties": {"x": "y"}, "body_base64": "AP8=", "born_timestamp": 5, "born_host": "[::1]:80",
}  # fmt: skip


def test_every_key_counts() -> None:
    one = message_of_json(json.dumps(WHOLE).encode())
    assert (one.topic, one.body, one.queue_id, one.flag, one.tags) == ("T", b"\0\xff", 3, -1, "A")
    assert (one.keys, one.uniq_key, one.properties) == (["a", "b"], "u", {"x": "y"})
    assert (one.born_timestamp, one.born_host) == (5, (bytes(15) + b"\1", 80))
    assert message_of_json(b'{"topic":"T","body_utf8":"\xc3\xa4","tags":null}').body == "ä".encode()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"topic": ""}, "topic is missing"),
        ({"topic": 3}, "topic is not a string"),
        ({"tag": "A"}, "'tag' is not a key"),
        ({"queue_id": True}, "queue_id is not"),
        ({"queue_id": -1}, "queue_id is not"),
        ({"flag": 1 << 31}, "flag is not"),
        ({"keys": "a"}, "keys is not a list"),
        ({"keys": ["a", " "]}, "each with a key"),
        ({"properties": {"a": 1}}, "not an object of strings"),
        ({"properties": {"a": "\x02KEYS\x01forged"}}, "separator"),
        ({"tags": "\x01"}, "separator"),
        ({"body_base64": "%"}, "body_base64: "),
        ({"body_base64": None}, "no body: give"),
        ({"body_hex": "00"}, "a message has one body"),
        ({"born_host": "::1"}, "not an address and a port"),
        ({"born_host": "1.2.3.4:65536"}, "port"),
    ],
)
def test_what_is_no_message(change: dict[str, object], why: str) -> None:
    with pytest.raises(LineError, match=why):
        message_of_json(json.dumps(WHOLE | change).encode())


@pytest.mark.parametrize(
    "line", [b"[]", b"nope", b'{"topic":"\xff"}', b'{"topic":"T","body_utf8":"\\ud800"}']
)
def test_what_is_no_object(line: bytes) -> None:
    with pytest.raises(LineError):
        message_of_json(line)


def test_a_text_with_spaces_is_several_keys() -> None:
    """As with `Message#setKeys`, also where they are a list, and only with spaces (`KEY_SEPARATOR`)."""
    one = message_of_json(json.dumps(WHOLE | {"keys": ["a b", "c", "d\te"]}).encode())
    assert one.keys == ["a", "b", "c", "d\te"]
    assert CsvHeader(b"topic,body_utf8,keys").message(b"T,x,a  b\tc").keys == ["a", "b\tc"]


def test_csv_has_the_same_names() -> None:
    header = CsvHeader(b"topic,body_utf8,keys,properties,queue_id,tags")
    one = header.message(b'T,"a,""b""\nc",k1 k2,"{""x"":""y""}",2,')
    assert (one.body, one.keys, one.properties, one.queue_id, one.tags) == (
        b'a,"b"\nc', ["k1", "k2"], {"x": "y"}, 2, None,
    )  # fmt: skip
    assert header.message(b"T,,,,,").body == b""
    for line, why in (
        (b"T", "1 cells"),
        (b"T,,,,x,", "whole number"),
        (b"T,,,,1_0,", "whole number"),
        (b"T,,,{,,", "JSON"),
        (b'"', "CSV"),
    ):
        with pytest.raises(LineError, match=why):
            header.message(line)
    for line in (b"topic,nope", b"body_utf8", b"topic,topic", b'"'):
        with pytest.raises(UsageError, match="CSV header"):
            CsvHeader(line)


def test_hosts() -> None:
    assert parse_host("1.2.3.4:10911") == (bytes([1, 2, 3, 4]), 10911)
