"""The answer of `rmqtool show` in all its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, worst
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.record_document import FieldRows, ShownField, field_rows
from rmqtool.query.locate import What
from rmqtool.query.meaning import explain, unique_ids
from rmqtool.store.coverage import Incomplete, coverage

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.query.one_record import OneRecord
    from rmqtool.query.target import Answer
    from rmqtool.query.units import UnitView
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.show/1"

Row = dict[str, Any]

_CSV = ("name", "position", "length", "hex", "value", "meaning")
_FIRST_BYTES = 256
"""bytes of a long field that the page shows unless --body asks for all"""


class Shown:
    """One answer on its way out."""

    def __init__(self, context: Context, store: Store, answer: Answer, bodies: BodyOptions) -> None:
        self._context = context
        self._store = store
        self._answer = answer
        self._bodies = bodies
        form = bodies.body or ("none" if context.format in {"table", "csv"} else "auto")
        self._shape = MessageShape(form, bodies.body_sha256, bodies.redacted)
        self._record = answer.record()
        self._problem = False

    def write(self) -> ExitCode:
        """Writes the answer and returns the exit code."""
        if self._context.format in {"raw", "hex"}:
            self._write_bytes()
        else:
            self._write_document()
        reasons = {row["reason"] for row in self._answer.unreadable}
        codes = [ExitCode.DAMAGE if self._problem else ExitCode.OK]
        codes += [ExitCode.INCOMPLETE] if Incomplete.UNREADABLE in reasons else []
        return worst([*codes, ExitCode.INTERRUPTED] if Incomplete.INTERRUPTED in reasons else codes)

    def _write_bytes(self) -> None:
        context, record = self._context, self._record
        if record is None or not record.place.is_record:
            self._problem = True
            context.talk.warn(self._headline())
            return
        if context.format == "raw":
            context.out.write(record.raw)
        else:
            from rmqtool.output.hexview import plain_hex_lines

            look = context.look
            lines = plain_hex_lines(record.raw, look, base=record.physical_offset)
            context.out.write(look.encode("\n".join([*lines, ""])))
        context.out.flush()

    def _write_document(self) -> None:
        fields = self._fields()
        told = self._document(fields)
        context = self._context
        if context.format == "json":
            context.document(SCHEMA, told)
        elif context.format == "table":
            from rmqtool.output.record_page import RecordPage

            most = None if self._bodies.body not in {None, "none"} else _FIRST_BYTES
            RecordPage(context.page(), context.look, context.zone).write(told, fields.raw, most)
        else:
            self._write_rows(told)

    def _write_rows(self, told: Row) -> None:
        lists = ("fields", "index_items", "dispatch_units", "inner_messages")
        head = {name: value for name, value in told.items() if name not in {*lists, "unit", *_COVERAGE}}
        with self._context.rows(SCHEMA, (), csv_columns=_CSV) as rows:
            if self._context.format == "csv":
                rows.write_rows(told["fields"])
            else:
                rows.write_rows([head])
                rows.write_rows({"type": "field", **one} for one in told["fields"])
                units = [told.get("unit"), *told.get("dispatch_units", ())]
                rows.write_rows({"type": "unit", **one} for one in units if one is not None)
                rows.write_rows({"type": "index_item", **one} for one in told.get("index_items", ()))
                rows.write_rows(told.get("inner_messages", ()))
            rows.finish({"what": told["what"], **{name: told[name] for name in _COVERAGE if name in told}})

    def _fields(self) -> FieldRows:
        record = self._record
        if record is None:
            return FieldRows()
        views = explain(record, self._context.zone.iso)
        start = record.place.start
        shown = [
            ShownField(
                one.name,
                start + one.start,
                record.raw[one.start : one.start + one.length],
                one.value,
                one.meaning,
                one.property,
            )
            for one in views
        ]
        bodies = self._bodies.body != "none"
        rows = field_rows(shown, self._shape, record.raw, start, bodies=bodies)
        if self._shape.redacted and not record.place.is_record:
            # what no field claims may be any of what is to be hidden
            rows.raw = rows.raw[: max((one.start + one.length for one in views), default=0)]
        return rows

    def _document(self, fields: FieldRows) -> Row:
        answer, record = self._answer, self._record
        told: Row = {
            "type": "none",
            "what": "nothing" if answer.place is None else answer.place.what.value,
            "target": {"given": answer.given, "kind": answer.kind, "source": answer.source},
            "headline": self._headline(),
            "notes": [] if "hosts" in self._shape.redacted else [*answer.notes],
            "matches": list(answer.matches),
            "id": self._id_parts(),
        }
        told |= self._place()
        if record is None and not self._shape.redacted and (around := answer.around()):
            told["bytes_hex"] = around.hex()
        if record is None or not record.place.is_record:
            self._problem = True
        else:
            told |= self._columns(record)
            told |= self._beside(record)
        told["fields"] = fields.rows
        return told | coverage(answer.unreadable)

    def _id_parts(self) -> Row | None:
        if self._shape.redacted & {"hosts", "keys", "properties"}:
            return None
        if self._answer.id_parts is not None or self._record is None:
            return self._answer.id_parts
        return next(unique_ids(self._record), None)

    def _headline(self) -> str:
        place = self._answer.place
        if place is None:
            return f"No record has the id {self._answer.given}"
        if place.what is What.NO_FILE:
            return f"No record at offset {place.physical_offset}: {self._no_file(place.physical_offset)}"
        if place.segment is None:
            raise AssertionError
        start, shown = place.segment.base + place.start, place.physical_offset
        left = ", behind the end of the log: left from an earlier life" if place.leftover else ""
        words = {
            What.RECORD: f"Record at offset {start}{left}",
            What.INSIDE: f"Offset {shown} lies {shown - start} bytes inside the record at offset {start}",
            What.DAMAGED: f"No record at offset {shown}: a damaged one, or other bytes",
            What.BLANK: f"No record at offset {shown}: filler from {start} to the end of the file",
            What.ZERO: f"No record at offset {shown}: zeros, the log has not reached it",
            What.STALE: f"No record at offset {shown}: behind the end of the log, left from an earlier life",
            What.GARBAGE: f"No record at offset {shown}: {place.length} bytes from {start} on are no record",
        }
        return words[place.what]

    def _no_file(self, offset: int) -> str:
        segments = self._store.segments
        if not segments:
            return "the commit log cannot be read" if self._answer.unreadable else "there is no commit log"
        if any(hole.start <= offset < hole.end for hole in segments.holes()):
            return "the file that held it is missing"
        if offset < segments.first_offset:
            return f"the log begins at {segments.first_offset}, older files were deleted"
        return f"the log files end at {segments.end_offset}"

    def _place(self) -> Row:
        place = self._answer.place
        if place is None or place.segment is None:
            return {} if place is None else {"physical_offset": place.physical_offset}
        start = place.start if self._record is not None else place.position
        told: Row = {
            "path": place.segment.file.shown,
            "segment": place.segment.base,
            "position": start,
            "physical_offset": place.segment.base + start,
            "address": f"{place.segment.base:020d}:{start}",
            "asked_offset": place.physical_offset,
            "leftover": place.leftover,
        }
        if not place.is_record:
            told |= {"length": place.length, "reason": place.reason, "expected": place.expected}
            told |= {"found": place.found, "nearest_before": place.before, "nearest_after": place.after}
            if self._record is not None and self._record.error is not None:
                told["frame_error"] = str(self._record.error)
        return told

    def _columns(self, record: OneRecord) -> Row:
        from rmqtool.output.inner import has_inner, with_inner

        batch = record.batch((*self._shape.columns, *_extra(self._shape)))
        rows, bad = with_inner(batch, self._shape) if has_inner(batch) else ([], 0)
        visible = [name for name in batch.schema.names if name in self._shape.columns]
        names, lists = self._shape.rows(batch.select(visible))
        told = {name: next(iter(values)) for name, values in zip(names, lists, strict=True)}
        self._problem |= bool(bad) or told["crc"] == "bad" or record.place.leftover
        kept = {name: value for name, value in told.items() if value is not None or name not in OMIT_NULL}
        return {**kept, "inner_messages": rows[1:]}

    def _beside(self, record: OneRecord) -> Row:
        from rmqtool.query.index_lookup import items_of_record
        from rmqtool.query.units import units_of

        own, others = units_of(self._store, record)
        self._problem |= any(one.agrees is False for one in (own, *others))
        told: Row = {
            "unit": _unit_row(own),
            "unit_absent": own.absent,
            "dispatch_units": [_unit_row(one) for one in others if one.values is not None],
            "dispatch_absent": [
                {"topic": one.topic, "queue_id": one.queue_id, "slot": one.slot, "reason": one.absent}
                for one in others
                if one.values is None
            ],
        }
        keys = record.indexed_keys
        found, skipped = items_of_record(
            self._store, record.topic, dict.fromkeys(key for _, key in keys), record.physical_offset
        )
        return told | self._index(record, keys, found, skipped)

    def _index(
        self, record: OneRecord, keys: list[tuple[str, str]], found: dict[str, list[Any]], skipped: list[str]
    ) -> Row:
        hides = self._shape.redacted & {"keys", "properties"}
        items: list[Row] = []
        absent: list[Row] = []
        for name, key in keys:
            shown = None if hides or name in self._shape.hidden_properties else key
            items += [{"property": name, "key": shown, **_item_row(one)} for one in found[key]]
            if not found[key]:
                absent.append({"property": name, "key": shown, "reason": self._why_absent(record, skipped)})
        return {"index_items": items, "index_absent": absent, "index_skipped": skipped}

    def _why_absent(self, record: OneRecord, skipped: list[str]) -> str:
        if record.values["sys_flag"] & 0xC == 0xC:
            return "a rollback record is not indexed"
        if not self._store.index_files():
            return "there is no index file"
        return "not in the index" if not skipped else f"not found; {', '.join(skipped)} cannot be searched"


_COVERAGE = ("complete", "incomplete_reason", "not_covered")


def _extra(shape: MessageShape) -> tuple[str, ...]:
    return () if "plain_body" in shape.columns else ("plain_body",)


def _unit_row(unit: UnitView) -> Row | None:
    if unit.values is None:
        return None
    differences = [dict(zip(("field", "expected", "found"), one, strict=True)) for one in unit.differences]
    row: Row = {
        "kind": unit.kind.value,
        "topic": unit.topic,
        "queue_id": unit.queue_id,
        "path": unit.path,
        "position": unit.position,
        "slot": unit.slot,
        **unit.values,
        "state": unit.state,
        "agrees": unit.agrees,
        "differences": differences,
        "tags_code_meaning": unit.meaning,
    }
    if unit.ext_tags_code is not None:
        row["ext_tags_code"] = unit.ext_tags_code
    return row


def _item_row(item: Any) -> Row:
    return {name: getattr(item, name) for name in item.__slots__}
