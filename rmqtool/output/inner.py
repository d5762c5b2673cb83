"""Rows for the messages inside batch records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from formats.batch import inner_messages
from formats.commitlog import SysFlag
from formats.errors import FormatError
from formats.properties import decode, split_keys
from rmqtool.output.messages import OMIT_NULL, MessageShape, encode_body
from rmqtool.output.redaction import NEEDED

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtool.output.redaction import RecordRedaction

_WRAPPED = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_CARRIER_ONLY = frozenset({"body_crc", "plain_body_sha256"})


def has_inner(batch: pa.RecordBatch) -> bool:
    """Does any record of the batch hold several messages?"""
    return any(flag & _WRAPPED for flag in batch["sys_flag"].to_pylist())


def with_inner(batch: pa.RecordBatch, shape: MessageShape) -> tuple[list[dict[str, Any]], int]:
    """Rows of the batch, each followed by the messages in it; how many bodies could not be taken apart."""
    names, lists = shape.rows(batch)
    rows: list[dict[str, Any]] = []
    bad = 0
    for index, values in enumerate(zip(*lists, strict=False)):
        row = {
            name: value
            for name, value in zip(names, values, strict=True)
            if value is not None or name not in OMIT_NULL
        }
        rows.append(row)
        if row["sys_flag"] & _WRAPPED:
            body = batch["plain_body"][index].as_py()
            inner, failed = _inner_rows(row, body, shape, _rule(batch, index, shape))
            rows += inner
            bad += failed
    return rows, bad


def _rule(batch: pa.RecordBatch, index: int, shape: MessageShape) -> RecordRedaction:
    """What is hidden of the record that carries the messages."""
    row = {name: batch[name][index].as_py() for name in NEEDED}
    return shape.redaction.record(row)


def _inner_rows(
    carrier: dict[str, Any], body: bytes | None, shape: MessageShape, rule: RecordRedaction
) -> tuple[list[dict[str, Any]], int]:
    rows: list[dict[str, Any]] = []
    shared = {name: carrier[name] for name in ("path", "physical_offset", "topic", "queue_id")}
    if body is None:
        return [{"type": "inner_error", **shared, "reason": "the body cannot be decompressed"}], 1
    try:
        for item in inner_messages(body, carrier["queue_offset"]):
            message = item.message
            properties = decode(message.properties)
            keys = properties.get("KEYS")
            row = {
                "type": "inner_message",
                **shared,
                "number": item.number,
                "body_position": item.position,
                "queue_offset": item.queue_offset,
                "flag": message.flag,
                "tags": properties.get("TAGS"),
                "keys": None if keys is None else split_keys(keys),
                "uniq_key": properties.get("UNIQ_KEY"),
                "properties": properties,
                "body_length": message.body_length,
            }
            rows.append(_shown(row, bytes(message.body), shape, rule))
    except FormatError as error:
        reason = "the body is not a sequence of messages" if shape.redacted else str(error)
        rows.append({"type": "inner_error", **shared, "reason": reason})
        return rows, 1
    return rows, 0


def _shown(row: dict[str, Any], body: bytes, shape: MessageShape, rule: RecordRedaction) -> dict[str, Any]:
    if not shape.redacted:
        return row | _shown_body(body, shape)
    hidden = shape.hidden({**row, "sys_flag": 0}, rule.inner(row), body, known=True)
    names = [name for name in hidden.pop("redacted") if name not in _CARRIER_ONLY]
    shown = {} if "body" in names else _shown_body(body, shape)
    marks = {name: mark for name, mark in hidden.items() if mark is not None and name not in _CARRIER_ONLY}
    return row | shown | marks | {"redacted": names}


def _shown_body(body: bytes, shape: MessageShape) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if shape.shows_body:
        form = "utf8" if shape.body == "auto" else shape.body
        text = encode_body(body, form)
        shown = {f"body_{form}": text} if text is not None else {"body_base64": encode_body(body, "base64")}
        if shape.one_body:
            shown = {"body": text if text is not None else f"base64:{shown['body_base64']}"}
    if shape.shows_digest:
        shown["body_sha256"] = hashlib.sha256(body).hexdigest()
    return shown
