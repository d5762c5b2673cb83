"""One record as a page for people: what it is, its bytes with their meaning, what points to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.hexview import HexField, hex_lines, plain_hex_lines
from rmqtool.output.redaction import REDACTED
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rmqtool.output.look import Look
    from rmqtool.output.page import Page
    from rmqtool.output.times import Zone

Row = dict[str, Any]


class RecordPage:
    """Writes the document of `rmqtool show` (without its schema) section by section."""

    def __init__(self, page: Page, look: Look, zone: Zone) -> None:
        self._page = page
        self._look = look
        self._zone = zone

    def write(self, told: Mapping[str, Any], raw: bytes, most: int | None) -> None:
        """`raw`: the bytes to show, hidden ones zeroed. most: so many bytes of a long field are shown."""
        self._page.heading(told["headline"])
        for note in told["notes"]:
            self._page.line(f"  {note}")
        self._page.facts(self._facts(told))
        if raw:
            self._page.heading("Bytes")
            self._bytes(told, raw, most)
        if "bytes_hex" in told:
            self._page.heading(f"Bytes from {told['asked_offset']} on")
            around = bytes.fromhex(told["bytes_hex"])
            for line in plain_hex_lines(around, self._look, base=told["asked_offset"]):
                self._page.raw_line(line)
        if told.get("unit") or told.get("unit_absent"):
            self._units(told)
        if told.get("index_items") or told.get("index_absent"):
            self._index(told)
        self._inner(told.get("inner_messages", ()))
        self._page.close()

    def _facts(self, told: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        yield "file", told.get("path")
        if "segment" in told:
            yield "offset", f"{told['physical_offset']} (0x{told['physical_offset']:x}, {told['address']})"
        yield from _why(told)
        if told.get("type") != "message":
            return
        yield "topic", told.get("topic")
        yield "queue", f"{told['queue_id']}, offset {told['queue_offset']}"
        yield "stored", f"{self._zone.iso(told['store_timestamp'])} ({told['store_timestamp']})"
        yield "born", f"{self._zone.iso(told['born_timestamp'])} ({told['born_timestamp']})"
        for name in ("offset_msg_id", "uniq_key", "tags", "keys", "compression"):
            yield name, told.get(name) or None
        yield "crc", told.get("crc")
        if told.get("transaction") != "none":
            yield "transaction", told.get("transaction")
        for name in ("body_utf8", "body_gbk", "body_hex", "body_base64", "body_sha256", "plain_body_sha256"):
            yield name, told.get(name)
        id_parts = told.get("id") or {}
        for name, value in id_parts.items():
            yield f"id {name}", value

    def _bytes(self, told: Mapping[str, Any], raw: bytes, most: int | None) -> None:
        start = told["position"]
        fields = [
            HexField(
                one["position"] - start,
                one["length"],
                _label(one["name"]),
                one["meaning"] or "",
                hidden=one["hex"] is None,
            )
            for one in told["fields"]
        ]
        for line in hex_lines(raw, fields, self._look, base=told["physical_offset"], most=most):
            self._page.raw_line(line)

    def _units(self, told: Mapping[str, Any]) -> None:
        self._page.heading("Consume queue")
        if told["unit_absent"]:
            self._page.line(f"  {told['unit_absent']}")
        units = [one for one in (told["unit"], *told["dispatch_units"]) if one is not None]
        for unit in units:
            self._unit(unit)
        for one in told["dispatch_absent"]:
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

    def _index(self, told: Mapping[str, Any]) -> None:
        self._page.heading("Index")
        if told["index_items"]:
            items = [_with_label(one) for one in told["index_items"]]
            self._page.table(_INDEX, items)
        for one in told["index_absent"]:
            self._page.line(f"  no item for {one['property']} {one['key']}: {one['reason']}")

    def _inner(self, messages: Iterable[Row]) -> None:
        held = list(messages)
        if held:
            self._page.heading("Messages inside")
            self._page.table(_INNER, held)
            for one in held:
                if one["type"] == "inner_error":
                    self._page.line(f"  {one['reason']}")


def _why(told: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Where the frame fails and what lies near; the magic is told in hex."""
    reason = told.get("reason")
    if reason is not None and told["what"] in {"damaged", "garbage", "stale"}:
        yield "reason", reason
        as_text = _hex32 if reason in {"bad_magic", "zero"} else str
        for name in ("expected", "found"):
            yield name, REDACTED if told[name] is None else as_text(told[name])
        yield "frame", told.get("frame_error")
    yield "record before", told.get("nearest_before")
    yield "record behind", told.get("nearest_after")


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
    Column("number", "item", right=True),
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
