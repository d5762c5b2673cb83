"""The answer of `rmqtool show` in all its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, worst
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.record_document import FieldRows, ShownField, field_rows, field_rule, rule_of
from rmqtool.output.record_links import disagrees, index_items, units
from rmqtool.output.redaction import REDACTED, hide_read_bytes
from rmqtool.query.locate import What
from rmqtool.query.meaning import explain, unique_ids
from rmqtool.store.coverage import Incomplete, coverage
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.query.one_record import OneRecord
    from rmqtool.query.target import Answer
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
        self._rule = rule_of(self._record, self._shape.redaction) if self._record is not None else None
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
            context.console.warn(self._headline())
            return
        if context.format == "raw":
            context.out.write(record.raw)
        else:
            from rmqtool.output.hexview import plain_hex_lines

            look = context.text_style
            lines = plain_hex_lines(record.raw, look, base=record.physical_offset)
            context.out.write(look.encode("\n".join([*lines, ""])))
        context.out.flush()

    def _write_document(self) -> None:
        fields = self._fields()
        reported = self._document(fields)
        context = self._context
        if context.format == "json":
            context.document(SCHEMA, reported)
        elif context.format == "table":
            from rmqtool.output.record_page import RecordPage

            most = None if self._bodies.body not in {None, "none"} else _FIRST_BYTES
            RecordPage(context.page(), context.text_style, context.zone).write(reported, fields.raw, most)
        else:
            self._write_rows(reported)

    def _write_rows(self, reported: Row) -> None:
        lists = ("fields", "index_items", "dispatch_units", "inner_messages")
        head = {name: value for name, value in reported.items() if name not in {*lists, "unit", *_COVERAGE}}
        with self._context.rows(SCHEMA, (), csv_columns=_CSV) as rows:
            if self._context.format == "csv":
                rows.write_rows(reported["fields"])
            else:
                rows.write_rows([head])
                rows.write_rows({"type": "field", **one} for one in reported["fields"])
                units = [reported.get("unit"), *reported.get("dispatch_units", ())]
                rows.write_rows({"type": "unit", **one} for one in units if one is not None)
                rows.write_rows({"type": "index_item", **one} for one in reported.get("index_items", ()))
                rows.write_rows(reported.get("inner_messages", ()))
            rows.finish(
                {"what": reported["what"], **{name: reported[name] for name in _COVERAGE if name in reported}}
            )

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
        rule = field_rule(record, self._rule, bodies=self._bodies.body != "none")
        rows = field_rows(shown, rule, record.raw, start)
        if self._rule is not None and not record.place.is_record:
            # what no field claims may be any of what is to be hidden
            rows.raw = rows.raw[: max((one.start + one.length for one in views), default=0)]
        return rows

    def _document(self, fields: FieldRows) -> Row:
        answer, record = self._answer, self._record
        reported: Row = {
            "type": "none",
            "what": "nothing" if answer.place is None else answer.place.what.value,
            "target": {"given": self._given, "kind": answer.kind, "source": answer.source},
            "headline": self._headline(),
            "notes": [*answer.notes],
            "matches": list(answer.matches),
            "id": self._id_parts(),
        }
        if self._given == REDACTED and answer.kind == "offset_msg_id":
            reported["notes"] = ["the id names another host than the record"] if answer.notes else []
        place = self._place()
        redacted = bool(self._shape.redacted)
        reported |= hide_read_bytes(place) if redacted else place
        if redacted:
            reported["redaction"] = sorted(self._shape.redacted)
        if record is None and not redacted and (around := answer.around()):
            reported["bytes_hex"] = around.hex()
        if record is None or not record.place.is_record:
            self._problem = True
        else:
            reported |= self._columns(record)
            reported |= units(self._store, record, self._rule)
            reported |= index_items(self._store, record, self._rule)
            self._problem |= disagrees(reported)
        reported["fields"] = fields.rows
        return reported | coverage(answer.unreadable)

    @property
    def _given(self) -> str:
        """The argument as it is repeated: an id holds a host, and a unique id is a key."""
        hiding = {"offset": frozenset(), "offset_msg_id": frozenset({"hosts"})}.get(self._answer.kind, _ID_IS)
        return REDACTED if self._shape.redacted & hiding else self._answer.given

    def _id_parts(self) -> Row | None:
        """The parts of the id; those of a hidden one are left out whole."""
        if self._given == REDACTED:
            return None
        if self._answer.id_parts is not None or self._record is None:
            return self._answer.id_parts
        return None if self._shape.redacted & _ID_IS else next(unique_ids(self._record), None)

    def _headline(self) -> str:
        place = self._answer.place
        if place is None:
            return f"No record has the id {self._given}"
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
            What.GARBAGE: f"No record at offset {shown}: the {place.length} bytes from {start} on are none",
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
        reported: Row = {
            "path": place.segment.file.display_path,
            "segment": place.segment.base,
            "position": start,
            "physical_offset": place.segment.base + start,
            "address": f"{file_name(place.segment.base)}:{start}",
            "asked_offset": place.physical_offset,
            "leftover": place.leftover,
        }
        if not place.is_record:
            reported |= {"length": place.length, "reason": place.reason, "expected": place.expected}
            reported |= {"found": place.found, "nearest_before": place.before, "nearest_after": place.after}
            if self._record is not None and self._record.error is not None:
                reported["frame_error"] = str(self._record.error)
        return reported

    def _columns(self, record: OneRecord) -> Row:
        from rmqtool.output.inner import has_inner, with_inner

        columns = self._shape.columns
        batch = record.batch(columns if "plain_body" in columns else (*columns, "plain_body"))
        rows, bad = with_inner(batch, self._shape) if has_inner(batch) else ([], 0)
        names, lists = self._shape.rows(batch)
        reported = {name: next(iter(values)) for name, values in zip(names, lists, strict=True)}
        self._problem |= bool(bad) or reported["crc"] == "bad" or record.place.leftover
        kept = {name: value for name, value in reported.items() if value is not None or name not in OMIT_NULL}
        return {**kept, "inner_messages": rows[1:]}


_ID_IS = frozenset({"hosts", "keys", "properties"})
"""what a unique id belongs to"""
_COVERAGE = ("complete", "incomplete_reason", "not_covered")
