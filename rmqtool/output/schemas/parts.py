"""Schemas of what many answers share: records, changes of plans, findings, what is not covered."""

from __future__ import annotations

import pyarrow as pa

from rmqtool.check.catalogue import Severity
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.schemas.words import Schema, array, one_of, record, when, with_more
from rmqtool.repair.plan import Action
from rmqtool.scan.table import COLUMNS
from rmqtool.store.coverage import Incomplete
from rmqtool.store.doubts import Doubt

_CHOICES = {
    "magic": ["V1", "V2"],
    "crc": ["ok", "bad", "absent"],
    "compression": [None, "zlib", "lz4", "zstd", "unknown"],
    "transaction": ["none", "prepared", "commit", "rollback"],
}
"""columns of the record table that hold one of a few words"""
_ALWAYS = {
    "path", "position", "physical_offset", "store_size", "magic", "crc", "queue_id", "queue_offset", "flag",
    "sys_flag",
    "transaction", "born_timestamp", "store_timestamp", "reconsume_times", "body_length",
}  # fmt: skip
"""columns that are never null"""
_BODIES = (
    "body_utf8",
    "body_gbk",
    "body_hex",
    "body_base64",
    "body_error",
    "body_sha256",
    "plain_body_sha256",
)

LEFT_OUT = record(
    f"path:str reason?={one_of(Incomplete)} error?:str position?:int physical_offset?:int length?:int|null "
    "files?:int last_path?:str store?:str "
    f"records?:int cause?={one_of(Doubt)}"
)
"""a row of `not_covered`"""


def _column(name: str) -> Schema:
    if name in _CHOICES:
        return {"enum": _CHOICES[name]}
    kind = COLUMNS[name].type
    if pa.types.is_integer(kind):
        word = "integer"
    elif pa.types.is_map(kind):
        word = "object"
    else:
        word = "array" if pa.types.is_list(kind) else "string"
    return {"type": word if name in _ALWAYS else [word, "null"]}


def message() -> Schema:
    """A row of the record table, as every command lists records."""
    plain = MessageShape().keys
    known = {name: _column(name) for name in plain if name in COLUMNS}
    further = {name: {"type": ["string", "null"]} for name in (*_BODIES, "properties_raw_hex")}
    hidden = {"redacted": {"type": "array", "items": {"type": "string"}}}
    return {
        "type": "object",
        "required": ["type", *(name for name in known if name not in OMIT_NULL)],
        "properties": {"type": {"const": "message"}, **known, **further, **hidden},
    }


def coverage() -> Schema:
    """What every summary and document has: whether it is complete, and if not, why."""
    schema = record(f"complete:bool incomplete_reason?={one_of(Incomplete)}")
    schema["properties"]["not_covered"] = array(LEFT_OUT)
    return schema | {"allOf": [when("complete", [False], {"required": ["incomplete_reason"]})]}


def answered(words: str = "", /, **nested: Schema) -> Schema:
    """A summary or document: coverage, and `words` of all answers that were not cut short."""
    more = record(words, **nested)
    schema = coverage()
    schema["properties"] |= more["properties"]
    cut = [Incomplete.INTERRUPTED.value, Incomplete.UNREADABLE.value]
    schema["allOf"].append(when("incomplete_reason", cut, {}, {"required": more["required"]}))
    return schema


def finding() -> Schema:
    """A row of `verify`."""
    return record(
        f"type=finding code:str severity={one_of(Severity)} path:str|null position:int|null "
        "physical_offset:int|null length:int|null field:str|null expected:any found:any message:str hint:str "
        "topic:str|null queue_id:int|null queue_offset:int|null caused_by?:str first_timestamp?:int "
        "last_timestamp?:int store?:str"
    )


COST = record("messages:int|null bytes:int first_timestamp:int|null last_timestamp:int|null")


def change() -> Schema:
    """A row of a plan."""
    return record(
        f"type=change action={one_of(Action)} path:str why:str message:str position?:int|null "
        f"length?:int|null "
        "size?:int|null sha256?:str mtime_timestamp?:int"
    )


_PLAN = (
    "plan_id:str command:str store:str release:str parameters:obj changes:int notes:strs refusal:str|null "
    "unproven_offsets:objs undecided:objs not_salvaged:strs checked:obj|null"
)


def plan_facts() -> Schema:
    """What a plan is beside its changes."""
    return record(_PLAN, saved=COST, lost=COST)


def plan_summary() -> Schema:
    """The summary of every command that plans changes."""
    return answered(
        f"{_PLAN} applied:bool bytes_needed:int|null shares_blocks:bool output:str|null journal:str|null "
        "quarantine:str|null",
        saved=COST,
        lost=COST,
    )


def message_with(words: str) -> Schema:
    """A record with further keys."""
    return with_more(message(), words)
