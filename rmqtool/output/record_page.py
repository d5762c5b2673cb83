"""One record as a page for people: what it is, its bytes with their meaning, what points to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.hexview import HexField, hex_lines, plain_hex_lines
from rmqtool.output.redaction import REDACTED
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rmqtool.output.page import Page
    from rmqtool.output.text_style import TextStyle
    from rmqtool.output.times import Zone

Row = dict[str, Any]


class RecordPage:
    """Writes the document of `rmqtool show` (without its schema) section by section."""

    def __init__(self, page: Page, text_style: TextStyle, zone: Zone) -> None:
        self._page = page
        self._text_style = text_style
        self._zone = zone

    def write(self, reported: Mapping[str, Any], raw: bytes, most: int | None) -> None:
        """`raw`: the bytes to show, hidden ones zeroed. most: so many bytes of a long field are shown."""
        self._page.heading(reported["headline"])
        for note in reported["notes"]:
            self._page.line(f"  {note}")
        self._page.facts(self._facts(reported))
        if raw:
            self._page.heading("Bytes")
            self._bytes(reported, raw, most)
        if "bytes_hex" in reported:
            self._page.heading(f"Bytes from {reported['asked_offset']} on")
            around = bytes.fromhex(reported["bytes_hex"])
            for line in plain_hex_lines(around, self._text_style, base=reported["asked_offset"]):
                self._page.raw_line(line)
        if reported.get("unit") or reported.get("unit_absent"):
            self._units(reported)
        if reported.get("index_items") or reported.get("index_absent"):
            self._index(reported)
        self._inner(reported.get("inner_messages", ()))
        self._page.close()

    def _facts(self, reported: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        yield "file", reported.get("path")
        if "segment" in reported:
            yield (
                "offset",
                f"{reported['physical_offset']} (0x{reported['physical_offset']:x}, {reported['address']})",
            )
        yield from _why(reported)
        if reported.get("type") != "message":
            return
        yield "topic", reported.get("topic")
        yield "queue", f"{reported['queue_id']}, offset {reported['queue_offset']}"
        yield "stored", f"{self._zone.iso(reported['store_timestamp'])} ({reported['store_timestamp']})"
        yield "born", f"{self._zone.iso(reported['born_timestamp'])} ({reported['born_timestamp']})"
        for name in ("offset_msg_id", "uniq_key", "tags", "keys", "compression"):
            yield name, reported.get(name) or None
        yield "crc", reported.get("crc")
        if reported.get("transaction") != "none":
            yield "transaction", reported.get("transaction")
        for name in ("body_utf8", "body_gbk", "body_hex", "body_base64", "body_sha256", "plain_body_sha256"):
            yield name, reported.get(name)
        id_parts = reported.get("id") or {}
        for name, value in id_parts.items():
            yield f"id {name}", value

    def _bytes(self, reported: Mapping[str, Any], raw: bytes, most: int | None) -> None:
        start = reported["position"]
        fields = [
            HexField(
                one["position"] - start,
                one["length"],
                _label(one["name"]),
                one["meaning"] or "",
                hidden=one["hex"] is None,
            )
            for one in reported["fields"]
        ]
        for line in hex_lines(raw, fields, self._text_style, base=reported["physical_offset"], most=most):
            self._page.raw_line(line)

    def _units(self, reported: Mapping[str, Any]) -> None:
        self._page.heading("Consume queue")
        if reported["unit_absent"]:
            self._page.line(f"  {reported['unit_absent']}")
        units = [one for one in (reported["unit"], *reported["dispatch_units"]) if one is not None]
        for unit in units:
            self._unit(unit)
        for one in reported["dispatch_absent"]:
            self._page.line(f"  {one['topic']} {one['queue_id']} at {one['slot']}: {one['reason']}")

    def _unit(self, unit: Row) -> None:
        verdict = {True: "agrees with the record", False: "DISAGREES with the record", None: unit["state"]}
        resolved = unit.get("ext_tags_code")
        code = f"{unit['tags_code']} ({unit['tags_code_meaning']}"
        code += ")" if resolved is None else f", there: {resolved})"
        if unit["tags_code"] is None:
            code = unit["tags_code_meaning"]
        if unit["tags_code_meaning"] == "time of delivery":
            code = f"{unit['tags_code']} (time of delivery, {self._zone.iso(unit['tags_code'])})"
        batch = None
        if "batch_size" in unit:
            batch = f"{unit['batch_size']} messages from queue offset {unit['base_offset']}"
        self._page.facts(
            [
                ("file", unit["path"]),
                ("place", f"position {unit['position']}, slot {unit['slot']}"),
                ("physical offset", unit["physical_offset"]),
                ("size", unit["size"]),
                ("tags code", code),
                ("batch", batch),
                ("verdict", verdict[unit["agrees"]]),
                *[
                    (f"wrong {one['field']}", f"expected {one['expected']}, found {one['found']}")
                    for one in unit["differences"]
                ],
            ]
        )

    def _index(self, reported: Mapping[str, Any]) -> None:
        self._page.heading("Index")
        if reported["index_items"]:
            items = [_with_label(one) for one in reported["index_items"]]
            self._page.table(_INDEX, items)
        for one in reported["index_absent"]:
            self._page.line(f"  no index entry for {one['property']} {one['key']}: {one['reason']}")

    def _inner(self, messages: Iterable[Row]) -> None:
        held = list(messages)
        if held:
            self._page.heading("Messages inside")
            self._page.table(_INNER, held)
            for one in held:
                if one["type"] == "inner_error":
                    self._page.line(f"  {one['reason']}")


def _why(reported: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Where the frame fails and what lies near; the magic is reported in hex."""
    reason = reported.get("reason")
    if reason is not None and reported["what"] in {"damaged", "garbage", "stale"}:
        yield "reason", reason
        as_text = _hex32 if reason in {"bad_magic", "zero"} else str
        for name in ("expected", "found"):
            yield name, REDACTED if reported[name] is None else as_text(reported[name])
        yield "frame", reported.get("frame_error")
    yield "record before", reported.get("nearest_before")
    yield "record behind", reported.get("nearest_after")


def _hex32(value: int) -> str:
    return f"0x{value & 0xFFFFFFFF:08x}"


def _label(name: str) -> str:
    """The name beside the bytes; a property is named in its meaning."""
    short = {"prepared_transaction_offset": "prepared_tx_offset"}
    return "property" if name.startswith("properties.") else short.get(name, name)


def _with_label(item: Row) -> Row:
    """With the key as it is shown: a UNIQ_KEY stands above already, and is long."""
    return {**item, "label": item["property"] if item["property"] == "UNIQ_KEY" else item["key"]}


_INDEX = [
    Column("path", "file"),
    Column("number", "entry", right=True),
    Column("slot", right=True),
    Column("time_diff", "seconds", right=True),
    Column("prev", right=True),
    Column("label", "key", shrinks=True, style="cyan"),
]
_INNER = [
    Column("number", right=True),
    Column("queue_offset", "q.offset", right=True),
    Column("body_length", "bytes", right=True),
    Column("tags"),
    Column("keys", shrinks=True),
    Column("body_utf8", "body", shrinks=True),
]
