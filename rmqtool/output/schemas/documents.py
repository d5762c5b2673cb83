"""Schemas of answers that are one object, and of files that rmqtool writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.record_check import StopReason
from rmqtool.broker.start import Mode
from rmqtool.check.catalogue import Severity
from rmqtool.output.schemas.parts import answered
from rmqtool.output.schemas.words import Schema, array, nullable, one_of, record, when, with_more
from rmqtool.recovery.config_tables import Loads
from rmqtool.recovery.outcome import Verdict
from rmqtool.repair.journal import Journal
from rmqtool.repair.plan import Plan
from rmqtool.store.resolve import StoreForm

if TYPE_CHECKING:
    from pydantic import BaseModel

_VERDICT_SAYS = [
    when("verdict", [one.value], {"properties": {"safe_to_start": {"const": one.safe}}}) for one in Verdict
]
"""`safe_to_start` says what the verdict says"""


def _start() -> Schema:
    """One start, as `doctor` foretells it."""
    words = (
        "version:str assumed_settings:obj starts:bool|null start_segment:int|null stop_offset:int|null "
        f"mode={one_of(Mode)} stop_reason={one_of(StopReason)}|null verdict={one_of(Verdict)} "
        "min_physical_offset:int|null max_physical_offset:int|null deletes:strs timing_dependent:objs "
        "not_looked_at:strs safe_to_start:bool|null complete:bool version_known:bool"
    )
    queue = record("topic:str queue_id:int min_offset:int max_offset:int")
    lag = record("topic:str queue_id:int messages:int bytes:int oldest_timestamp:int|null")
    kept = array(record("from:int to:int recoverable:bool"))
    loss = record("messages:int bytes:int first_timestamp:int|null last_timestamp:int|null", ranges=kept)
    return record(
        words,
        lock=record("held:bool|null pid:int|null"),
        refusal=nullable(record("code:str message:str path:str|null")),
        truncates=array(record("path:str position:int")),
        queues=array(queue),
        config=array(record(f"path:str loads={one_of(Loads)}")),
        loss=nullable(loss),
        consequences=array(record(f"code:str severity={one_of(Severity)} message:str paths:strs")),
        dispatch_lag=array(lag),
        already_damaged=record("messages:int|null bytes:int|null paths:strs config:list"),
    )


def doctor() -> Schema:
    """The document of `doctor`."""
    cure = with_more(_start(), "cure:str") | {"allOf": _VERDICT_SAYS}
    whole = with_more(
        _start(),
        "version_source=given|inferred versions_considered:strs disk:obj",
        what_if=array(cure),
        advice=array(record("command:str why:str")),
    )
    schema = answered()
    schema["properties"] |= whole["properties"]
    cut = {"required": ["verdict", "safe_to_start", "what_if", "advice", "disk"]}
    schema["allOf"] += [
        when("incomplete_reason", ["interrupted"], cut, {"required": whole["required"]}),
        *_VERDICT_SAYS,
    ]
    return schema


def _info() -> Schema:
    release = record("guess:str|null first:str|null last:str|null mixed:bool source:str evidence:objs")
    file = record("path:str kind:str size:int disk_bytes:int|null")
    return answered(
        f"store:str root:str form={one_of(StoreForm)} roots:strs sizes:objs abort:obj checkpoint:obj|null "
        f"notes:strs "
        "segments:objs topics:objs queues:objs index:objs config:objs unknown:objs totals:objs "
        "not_looked_at:strs",
        release=release,
        lock=record("held:bool|null pid:int|null"),
        files=array(file),
    )


def _checkpoint_show() -> Schema:
    field = record("stored:int|null safe:int|null too_late:bool|null")
    start = nullable(record("stored:obj|null safe:obj|null"))
    return answered(
        "release:str exists:bool refusal:str|null proof:obj|null",
        fields={"type": "object", "additionalProperties": field},
        abnormal_start=start,
    )


def _store_status() -> Schema:
    latency = record("p50:num|null p99:num|null max:num|null")
    return record(
        "writer:bool pid:int|null dispatch_behind_bytes:int|null flush_behind_bytes:int|null disk_ratio:num",
        put=record("per_second:num|null", latency_ms=latency),
        get=record("per_second:num|null hit:int|null miss:int|null bytes:int|null"),
    )


def _report() -> Schema:
    return answered(
        "created_timestamp:int tool_version:str store:str release:str|null headline:str redaction:strs "
        "verify:obj "
        "stats:obj topics:list volume:any groups:any journals:objs left_out:counts",
        doctor=record(f"verdict={one_of(Verdict)} safe_to_start:bool|null"),
        map=record("summary:obj rows:objs"),
        plan=record("made:bool why:str|null rows:objs"),
    )


def _of_model(model: type[BaseModel]) -> Schema:
    """From a model that reads and writes the file itself."""
    return model.model_json_schema(by_alias=True, mode="serialization")


def documents() -> dict[str, tuple[str, Schema]]:
    """By name without `rmqtool.` and version: what it is, and its schema."""
    return {
        "doctor": ("What a broker does when it starts here.", doctor()),
        "info": ("What a store contains.", _info()),
        "show": (
            "One record in full.",
            answered("type:str what:str target:obj headline:str notes:strs matches:ints id:obj|null"),
        ),
        "checkpoint-show": ("The checkpoint, and what the data proves about it.", _checkpoint_show()),
        "report": ("The incident record.", _report()),
        "store-status": ("Counters of the writer of a store.", _store_status()),
        "export": (
            "Closing summary of an export.",
            answered(
                "messages:int bytes:int first_offset?:int|null end_offset?:int|null path?:str format?:str"
            ),
        ),
        "stream": (
            "Closing summary of a stream.",
            answered(
                "path:str format:str messages:int batches:int",
                stores=array(record("store:str end_offset:int")),
            ),
        ),
        "pipeline-rebuild": ("Stores rebuilt by pipeline rebuild.", answered("output:str stores?:objs")),
        "plan": ("A saved plan (--save-plan).", _of_model(Plan)),
        "journal": ("The journal of an in-place change, for undo.", _of_model(Journal)),
        "marker": (
            "The file that keeps brokers away during a change.",
            record("what:str next:str journal:str|null journal_id:str|null"),
        ),
        "export-state": (
            "How far an export with --resume has come.",
            record("options:obj position:obj|null"),
        ),
    }
