"""Schemas of answers that are rows and a summary."""

from __future__ import annotations

from dataclasses import dataclass, field

from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.broker.offset_by_time import Boundary
from rmqtool.check.levels import Level
from rmqtool.explain.entry import SEVERITIES
from rmqtool.messagestore.messages import PutStatus
from rmqtool.output.schemas.parts import (
    answered,
    change,
    finding,
    message,
    message_with,
    plan_summary,
)
from rmqtool.output.schemas.words import Schema, array, one_of, record
from rmqtool.query.offsets.audit import State
from rmqtool.query.offsets.compared import Difference
from rmqtool.query.offsets.places import Kind
from rmqtool.recovery.config_tables import Loads
from rmqtool.repair.undo_plan import Way
from rmqtool.scan.events import TailContent
from rmqtool.store.config_json import ParseState


@dataclass(frozen=True)
class Listing:
    """Rows by their `type`, and the summary. others: further types of rows, whose keys are not described."""

    about: str
    rows: dict[str, Schema]
    summary: Schema = field(default_factory=answered)
    others: tuple[str, ...] = ()


_PLACE = "path:str segment?:int position:int physical_offset?:int length:int"
_FURTHER = (
    "abort", "broker_identity", "checkpoint", "epoch", "epoch_file", "ext_end", "ext_unit", "index_slot",
    "lock", "undecoded",
)  # fmt: skip
"""rows of small files"""
_STATS = (
    "messages:int bytes:int body_bytes:int compressed:int largest:int first_timestamp:int last_timestamp:int"
)
_LINES = "count:int first_timestamp:int|null last_timestamp:int|null exceptions:counts example:str place:str"
_OFFSET = f"kind={one_of(Kind)} group:str|null topic:str queue_id:int"
_ACK = (
    "type=ack topic:str|null queue_id:int|null queue_offset:int|null physical_offset:int|null "
    f"offset_msg_id:str|null uniq_key:str|null message?:str line?:int status={one_of(PutStatus)}"
)


def _dump() -> Listing:
    unit = (
        "path:str position:int slot:int|null physical_offset:int|null size:int|null "
        "tags_code:int|null state:str"
    )
    rows = {
        "message": message(),
        "inner_message": record(
            "type=inner_message path:str|null physical_offset:int topic:str|null queue_id:int number:int "
            "body_position:int queue_offset:int flag:int properties:obj|null body_length:int"
        ),
        "inner_error": record("type=inner_error path:str|null physical_offset:int reason:str"),
        "blank": record("type=blank path:str segment:int position:int physical_offset:int length:int"),
        "gap": record(f"type=gap {_PLACE} reason:str expected?:any found?:any"),
        "tail": record(f"type=tail {_PLACE} content={one_of(TailContent)}"),
        "unit": record(f"type=unit {unit}"),
        "batch_unit": record(
            f"type=batch_unit {unit} store_timestamp:int|null base_offset:int|null batch_size:int|null"
        ),
        "index_header": record(
            "type=index_header path:str begin_timestamp:int end_timestamp:int begin_physical_offset:int "
            "end_physical_offset:int hash_slot_count:int index_count:int"
        ),
        "index_item": record(
            "type=index_item path:str number:int slot:int|null key_hash:int|null physical_offset:int "
            "time_diff:int prev:int"
        ),
        "config": record(f"type=config path:str state={one_of(ParseState)} content?:any"),
    }
    summary = answered("gaps:int")
    summary["anyOf"] = [
        {"required": ["messages", "bytes", "blanks", "first_offset", "end_offset"]},
        {"required": ["files", "rows", "by_type"]},
        {"required": ["not_covered"]},
    ]
    return Listing("Everything in a store, a folder of it or a file.", rows, summary, others=_FURTHER)


def _records(about: str, words: str, more: str = "", **nested: Schema) -> Listing:
    return Listing(about, {"message": message_with(more)}, answered(f"messages:int {words}", **nested))


def _plan(about: str) -> Listing:
    return Listing(about, {"change": change()}, plan_summary())


def _returned(kind: str, about: str) -> Listing:
    row = record(
        f"type={kind} group:str origin_topic:str|null origin_msg_id:str|null reconsume_times:int "
        "physical_offset:int store_timestamp:int consumed:bool|null keys:strs|null"
    )
    return Listing(about, {kind: row}, answered("messages:int not_consumed:int by_group:obj exported?:obj"))


def _diff() -> Listing:
    ends = record("from:int|null to:int|null")
    states = "equal|different|only_a|only_b"
    rows = {
        "range": record(f"type=range state={states} from:int to:int messages:int|null"),
        "message": record(
            "type=message state=only_a|only_b|moved|changed physical_offset:int uniq_key:str|null "
            "b_physical_offset?:int"
        ),
    }
    summary = answered(
        "first_difference:obj|null verdict=equal|a_ahead|b_ahead|diverged keep=a|b|both why:str only_a:int "
        "only_b:int moved:int changed:int",
        common=ends,
        a=ends,
        b=ends,
    )
    return Listing("Two commit logs compared.", rows, summary)


def _salvage() -> Listing:
    rows = {
        "source": record("type=source path:str bytes:int records:int duplicates:int moved:int unplaced:int"),
        "store": record(
            "type=store path:str segments:int first_offset:int|null end_offset:int|null messages:int "
            "moved:int "
            "tombstones:int"
        ),
    }
    summary = answered(
        "sources:int bytes:int records:int duplicates:int messages:int moved:int unplaced:int stores:int"
    )
    return Listing("Carved records, and the stores made of them.", rows, summary)


def _map() -> Listing:
    split = "states:obj topics:obj"
    rows = {
        "segment": record(
            "type=segment path:str segment:int size:int records:int first_timestamp:int|null "
            f"last_timestamp:int|null damaged_bytes:int cell_bytes:int cells:obj|null {split}"
        ),
        "missing": record("type=missing physical_offset:int length:int"),
    }
    summary = answered(f"segments:int records:int bytes:int damaged_bytes:int collapsed_segments:int {split}")
    return Listing("Segments of the commit log by what their bytes hold.", rows, summary)


def _verify() -> Listing:
    words = f"level={one_of(Level)} findings:int by_code:counts records:int bytes:int seconds:num"
    severities = record("error:int warning:int note:int")
    summary = answered("", by_severity=severities)
    one = record(words)
    summary["properties"] |= one["properties"] | {"stores": {"type": "array", "items": one}}
    several = {"required": ["stores"]}
    cut = {"properties": {"complete": {"const": False}}, "required": ["complete"]}
    summary["anyOf"] = [{"required": one["required"]}, several, cut]
    return Listing("Findings of all checks.", {"finding": finding()}, summary)


def _stats() -> Listing:
    rows = {
        "group": record(f"type=group {_STATS}"),
        "consumer_group": record(
            "type=consumer_group group:str waiting_messages:int|null waiting_bytes:int|null"
        ),
        "segment": record(
            "type=segment path:str segment:int size:int modified_timestamp:int free_timestamp:int|null "
            "free_now:bool"
        ),
        "duplicate": record("type=duplicate"),
    }
    summary = answered()
    total = record(
        "messages:int bytes:int topics:int first_timestamp:int|null last_timestamp:int|null log_bytes:int "
        "disk_bytes:int"
    )
    cut = {"properties": {"complete": {"const": False}}, "required": ["complete"]}
    summary["properties"] |= total["properties"] | {"stores": array(total)}
    summary["anyOf"] = [{"required": total["required"]}, {"required": ["stores"]}, cut]
    return Listing("Counts and sizes, by what --by names.", rows, summary)


def _offsets() -> dict[str, Listing]:
    audited = record(
        f"type=offset {_OFFSET} offset:int|null min_offset:int|null max_offset:int|null lag:int|null "
        f"next_timestamp:int|null state={one_of(State)}|null"
    )
    differing = record(
        f"type=difference {_OFFSET} a:int|null b:int|null ahead:int|null state={one_of(Difference)}"
    )
    return {
        "offsets-audit": Listing(
            "Stored offsets against their queues.",
            {"offset": audited},
            answered("offsets:int wrong:int by_state:counts version:str version_source:str"),
        ),
        "offsets-diff": Listing(
            "Stored offsets of two stores or tables.",
            {"difference": differing},
            answered("differences:int equal:int by_state:counts"),
        ),
        "offsets-clamp": _plan("Offsets set back into their queues: the plan."),
        "offsets-merge": _plan("Offsets of two stores merged: the plan."),
    }


def _queries() -> dict[str, Listing]:
    key = (
        "source?:str|null candidates?:int rejected_collisions?:int window?:list keys?:int "
        "keys_not_found?:int "
        "stores?:objs join?:str"
    )
    queue = "topic:str queue_id:int version:str version_source:str min_offset:int|null max_offset:int|null"
    local = {"required": ["source", "candidates", "rejected_collisions", "window"]}
    keys = _records("Messages by key.", key, "matched_keys?:strs shared_keys?:strs|null store?:str")
    cut = {"properties": {"complete": {"const": False}}, "required": ["complete"]}
    keys.summary["anyOf"] = [local, {"required": ["stores"]}, cut]
    slot = "slot?:int|null"
    return {
        "query-key": keys,
        "query-id": _records("Messages by id.", "kind:str source:str readings:objs", "found_by?:str"),
        "query-offset": _records(
            "Messages of a queue by offset.",
            f"{queue} offset:int status={one_of(one.name for one in GetMessageStatus)}|null "
            "next_begin_offset:int|null verdicts:objs",
            f"{slot} passes_broker?:bool|null passes_consumer?:bool|null",
        ),
        "query-time": Listing(
            "The queue offset of a time.",
            {"message": message_with(slot)},
            answered(
                f"{queue} timestamp:int boundary={one_of(Boundary)} queue_offset:int|null "
                "broker_queue_offset:int|null monotone:bool|null"
            ),
        ),
        "tail": _records("The last messages.", "first_offset:int|null end_offset:int|null followed:bool"),
        "store-get": _records("Messages of a queue.", "", slot),
        "sql": Listing("Rows of a query.", {"row": record("type=row")}, answered("rows:int")),
    }


def _incidents() -> dict[str, Listing]:
    level = record("level:int offset:int|null messages:int overdue:int next_timestamp:int|null")
    stages = "half|commit|rollback|schedule|deliver|retry|dlq|pop|store"
    return {
        "what-to-copy": Listing(
            "Which files doctor needs on another machine.",
            {"file": record("type=file path:str kind:str size:int disk_bytes:int copy:bool why:str|null")},
            answered(
                "files:int bytes:int disk_bytes:int left_out_files:int left_out_bytes:int "
                "left_out_disk_bytes:int reads_from:int|null"
            ),
        ),
        "delayed": Listing(
            "Delayed messages that wait.",
            {
                "delayed": record(
                    "type=delayed topic:str|null queue_id:int|null level:int deliver_timestamp:int "
                    "overdue_ms:int "
                    "physical_offset:int keys:strs|null uniq_key:str|null"
                )
            },
            answered(
                "messages:int overdue:int next_timestamp:int|null now_timestamp:int", by_level=array(level)
            ),
        ),
        "half": Listing(
            "Open transactions.",
            {
                "half": record(
                    "type=half topic:str|null group:str|null age_ms:int checks:int physical_offset:int "
                    "transaction_id:str|null"
                ),
                "op_without_half": record(
                    "type=op_without_half topic:null group:null queue_id:int queue_offset:int "
                    "physical_offset:int"
                ),
            },
            answered("open:int ops_without_half:int halves:int ops:int oldest_ms:int|null by_group:obj"),
        ),
        "retry": _returned("retry", "Messages that consumers gave back."),
        "dlq": _returned("dlq", "Messages that were given back too often."),
        "trace": Listing(
            "A message over its copies, in order of time.",
            {
                "step": record(
                    f"type=step stage={stages} topic:str|null queue_id:int|null queue_offset:int|null "
                    "physical_offset:int store_timestamp:int consumed_by:strs not_consumed_by:strs"
                ),
                "trace": record("type=trace trace_type:str physical_offset:int"),
            },
            answered("steps:int traces:int uniq_keys:strs"),
        ),
        "assign": Listing(
            "Queues of a topic by client.",
            {
                "assignment": record("type=assignment client:str queue_ids:ints brokers?:strs"),
                "move": record("type=move queue_id:int from:str|null to:str|null broker?:str"),
            },
            answered("queues:int clients:int moves:int strategy:str unassigned_queue_ids:ints"),
        ),
        "explain": Listing(
            "Lines of logs explained.",
            {
                "cause": record(
                    f"type=cause id:str severity={one_of(SEVERITIES)} meaning:str remarks:strs next:strs "
                    f"incidents:strs {_LINES}"
                ),
                "unknown": record(f"type=unknown level:str template:str {_LINES}"),
            },
            answered(
                "lines:int records:int bytes:int explained:int by_severity:counts causes:int "
                "unknown_lines:int "
                "unknown_templates:int"
            ),
        ),
    }


def _store() -> dict[str, Listing]:
    reserved = "segments:int bytes:int messages:int queue_files:int index_files:int"
    replicated = "role=slave|master address:str begin_offset:int end_offset:int bytes:int"
    refused = (
        f"type=refused status={one_of(PutStatus)} topic:str|null queue_id:int|null position:int "
        f"message:str|null"
    )
    bench = (
        "type=bench work:str engine:str body_bytes:int count:int seconds:num per_second:num ratio:num|null"
    )
    return {
        "store-init": Listing(
            "The store that was made.", {"store": record("type=store root:str version:str")}
        ),
        "store-put": Listing(
            "One acknowledgement a message.",
            {"ack": record(_ACK)},
            answered("messages:int bytes:int refused:int by_status:counts"),
        ),
        "store-transaction": Listing(
            "How a transaction ended.",
            {"ack": record(f"{_ACK} transaction_id:str state:str")},
            answered("transactions:int"),
        ),
        "store-load": Listing(
            "Messages of a replayable file that were refused.",
            {"refused": record(refused)},
            answered("segments:int bytes:int messages:int refused:int by_status:counts"),
        ),
        "store-topic": Listing(
            "Topics.",
            {
                "topic": record(
                    "type=topic topic:str read_queues:int write_queues:int perm:int memory:bool "
                    "attributes:obj state:str"
                )
            },
            answered("topics:int"),
        ),
        "store-group": Listing(
            "Settings of consumer groups.",
            {
                "group": record(
                    "type=group group:str retry_max:int retry_queues:int consume:bool broadcast:bool "
                    "state:str"
                )
            },
            answered("groups:int"),
        ),
        "store-groups": Listing(
            "Committed offsets.",
            {
                "group": record(
                    "type=group group:str topic:str queue_id:int offset:int max_offset:int|null lag:int|null"
                )
            },
            answered("groups:int queues:int"),
        ),
        "store-expire": Listing(
            "What went.", {"expired": record(f"type=expired {reserved}")}, answered(reserved)
        ),
        "store-replicate": Listing(
            "What was copied.",
            {"replication": record(f"type=replication {replicated}")},
            answered(replicated),
        ),
        "store-bench": Listing(
            "Figures.",
            {
                "bench": record(bench),
                "copy": record("type=copy way:str bytes:int seconds:num bytes_per_second:int"),
            },
            answered("figures:int left_out?:obj"),
        ),
    }


def listings() -> dict[str, Listing]:
    """All of them, by name without `rmqtool.` and version."""
    restore = record(
        f"type=restore way={one_of(Way)} path:str restorable:bool reason?:str position?:int length?:int"
    )
    states = "ok|empty|unparsable|missing"
    config = record(
        f"type=config path:str primary={states} bak={states} loads={one_of(Loads)} entries:int|null "
        "entries_lost:int|null"
    )
    return {
        "dump": _dump(),
        "verify": _verify(),
        "stats": _stats(),
        "map": _map(),
        "diff": _diff(),
        **_queries(),
        **_incidents(),
        **_offsets(),
        "config-check": Listing(
            "The JSON tables in config/ and their .bak.",
            {"config": config},
            answered("tables:int damaged:int entries_lost:int version:str version_source:str"),
        ),
        "config-salvage": _plan("Tables rebuilt from what can be read: the plan."),
        "checkpoint-set": _plan("A checkpoint that the data proves: the plan."),
        "recover": _plan("A store as it should be after a stop: the plan."),
        "rebuild": _plan("Consume queues and index from the log: the plan."),
        "undo": Listing(
            "What was put back.",
            {"restore": restore},
            answered(
                "restored?:int to_restore?:int changed_since:int store:str journal:str plan_id:str "
                "applied:bool"
            ),
        ),
        "salvage": _salvage(),
        **_store(),
        "schema": Listing(
            "Names of schemas.", {"schema": record("type=schema name:str about:str")}, answered("schemas:int")
        ),
    }
