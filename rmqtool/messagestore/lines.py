"""Messages from lines of text, JSON objects or CSV: what `rmqtool store put` reads."""

from __future__ import annotations

import base64
import csv
import ipaddress
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from formats.java import java_parse_int
from formats.properties import split_keys
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rmqtool.messagestore.messages import Host

_INT32, _INT64 = 1 << 31, 1 << 63
_PORTS = 1 << 16
_SEPARATORS = ("\x01", "\x02")
"""between and in stored properties (`MessageDecoder#messageProperties2String`)"""
_BODIES: Mapping[str, Callable[[str], bytes]] = {
    "body_utf8": str.encode,
    "body_base64": partial(base64.b64decode, validate=True),
    "body_hex": bytes.fromhex,
}
_NAMES = (
    "topic", "queue_id", "flag", "tags", "keys", "uniq_key", "properties", *_BODIES, "born_timestamp",
    "born_host",
)  # fmt: skip
_NUMBERS = {"queue_id": (0, _INT32), "flag": (-_INT32, _INT32), "born_timestamp": (-_INT64, _INT64)}


class LineError(ValueError):
    """A line that gives no message."""


def message_of_json(line: bytes) -> Message:
    """The message of one JSON object. Raises `LineError`."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LineError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise LineError("not a JSON object")
    return message_of(row, _body(row))


class CsvHeader:
    """The first line of a CSV input: which column is what. Raises `UsageError` for an unknown column.

    Keys are separated by blanks, properties are a JSON object; an empty cell is absent, but for the body
    where there is one column for it.
    """

    def __init__(self, line: bytes) -> None:
        try:
            self._names = [name.strip() for name in _cells(line)]
        except LineError as error:
            raise UsageError(f"the CSV header: {error}") from None
        unknown = [name for name in self._names if name not in _NAMES]
        if unknown or len(set(self._names)) < len(self._names) or "topic" not in self._names:
            given = ", ".join(self._names)
            raise UsageError(f"the CSV header '{given}' must have topic and be some of: {', '.join(_NAMES)}")
        bodies = [name for name in self._names if name in _BODIES]
        self._body = bodies[0] if len(bodies) == 1 else None

    def message(self, line: bytes) -> Message:
        """The message of one record. Raises `LineError`."""
        cells = _cells(line)
        if len(cells) != len(self._names):
            raise LineError(f"{len(cells)} cells, not {len(self._names)}")
        row: dict[str, Any] = {
            name: cell for name, cell in zip(self._names, cells, strict=True) if cell or name == self._body
        }
        for name in row.keys() & _NUMBERS.keys():
            row[name] = java_parse_int(row[name].strip(), 64)
            if row[name] is None:
                raise LineError(f"{name} is not a whole number")
        if "keys" in row:
            row["keys"] = [row["keys"]]
        if "properties" in row:
            try:
                row["properties"] = orjson.loads(row["properties"])
            except orjson.JSONDecodeError:
                raise LineError("properties is not a JSON object") from None
        return message_of(row, _body(row))


def _cells(line: bytes) -> list[str]:
    try:
        csv.field_size_limit(max(csv.field_size_limit(), len(line)))
        return next(csv.reader([line.decode()], strict=True), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise LineError(f"not CSV: {error}") from None


def parse_host(text: str) -> Host:
    """Address and port of `1.2.3.4:10911` or `[::1]:10911`. Raises `LineError`."""
    address, _, port = text.rpartition(":")
    try:
        ip = ipaddress.ip_address(address[1:-1] if address[:1] == "[" and address[-1:] == "]" else address)
        number = int(port)
    except ValueError:
        raise LineError(f"'{text}' is not an address and a port") from None
    if not 0 <= number < _PORTS:
        raise LineError(f"'{text}' has a port that is not between 0 and {_PORTS - 1}")
    return ip.packed, number


def message_of(row: Mapping[str, Any], body: bytes) -> Message:
    """The message of these keys with this body; None is absent. Raises `LineError`."""
    given = {name: value for name, value in row.items() if value is not None}
    for name in given:
        if name not in _NAMES:
            raise LineError(f"'{name}' is not a key of a message: {', '.join(_NAMES)}")
    for name, (low, high) in _NUMBERS.items():
        value = given.get(name, 0)
        if type(value) is not int or not low <= value < high:
            raise LineError(f"{name} is not a whole number between {low} and {high - 1}")
    for name in ("topic", "tags", "uniq_key", "born_host"):
        if not isinstance(given.get(name, ""), str):
            raise LineError(f"{name} is not a string")
    if not given.get("topic"):
        raise LineError("topic is missing")
    host = given.get("born_host")
    return Message(
        given["topic"],
        body,
        queue_id=given.get("queue_id"),
        tags=_plain("tags", given.get("tags")),
        keys=_keys(given.get("keys", [])),
        uniq_key=_plain("uniq_key", given.get("uniq_key")),
        flag=given.get("flag", 0),
        properties=_properties(given.get("properties", {})),
        born_timestamp=given.get("born_timestamp"),
        born_host=None if host is None else parse_host(host),
    )


def _body(given: Mapping[str, Any]) -> bytes:
    names = [name for name in _BODIES if given.get(name) is not None]
    if len(names) > 1:
        raise LineError(f"{' and '.join(names)}: a message has one body")
    if not names:
        raise LineError(f"no body: give {' or '.join(_BODIES)}")
    if not isinstance(given[names[0]], str):
        raise LineError(f"{names[0]} is not a string")
    try:
        return _BODIES[names[0]](given[names[0]])
    except ValueError as error:
        raise LineError(f"{names[0]}: {error}") from None


def _keys(keys: Any) -> Sequence[str]:
    """The keys as brokers find them: a text with spaces is several (`Message#setKeys`)."""
    if not isinstance(keys, list) or not all(isinstance(key, str) and split_keys(key) for key in keys):
        raise LineError("keys is not a list of strings, each with a key")
    for key in keys:
        _plain("keys", key)
    return [one for key in keys for one in split_keys(key)]


def _properties(properties: Any) -> dict[str, str] | None:
    if not isinstance(properties, dict) or not all(isinstance(one, str) for one in properties.values()):
        raise LineError("properties is not an object of strings")
    for name, value in properties.items():
        _plain("properties", name + value)
    return properties or None


def _plain(name: str, text: str | None) -> str | None:
    if text is not None and any(one in text for one in _SEPARATORS):
        raise LineError(f"{name} has a separator of properties in it")
    return text
