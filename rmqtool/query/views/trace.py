"""One message followed over its copies, with the groups that have come past each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formats.properties import DELAY, POP_CK, REAL_TOPIC, TIMER_OUT_MS
from formats.system_topics import (
    CHECK_MAX_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    RETRY_PREFIX,
    TIMER_TOPIC,
    half_offsets,
)
from formats.tags_code import SCHEDULE_TOPIC
from formats.trace_context import TRACE_TOPIC, trace_contexts
from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.groups import committed_offsets
from rmqtool.query.target import is_id, readings_of
from rmqtool.query.views.topic_records import records_of
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.picked import Missing, pick

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_SHOWN = (
    "topic", "queue_id", "queue_offset", "physical_offset", "store_timestamp", "born_timestamp",
    "reconsume_times", "uniq_key", "keys", "transaction", "tags",
)  # fmt: skip
_COLUMNS = (*_SHOWN, "properties", "plain_body")
MOST = 10_000
"""copies of messages that are followed; a key that more records have is none of one message"""


@dataclass
class Trace:
    """The copies of what has a key or an id. left: rows of `not_covered`; truncated: there are more."""

    store: Store
    given: str
    reading: ReadOptions
    source: KeySource = KeySource.AUTO
    left: list[Row] = field(default_factory=list)
    truncated: bool = False
    uniq_keys: list[str] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """Steps and decoded trace contexts, in order of time."""
        places = self._with_key(self.given)
        records = self._records(places)
        unique = {one["uniq_key"] for one in records if one["uniq_key"] and one["topic"] != TRACE_TOPIC}
        self.uniq_keys = sorted(unique)
        if unique:  # copies keep the unique id, keys may be those of many messages
            records = self._records({*places, *self._with_uniq_keys(unique)})
        steps = [self._step(one) for one in records if one["topic"] != TRACE_TOPIC]
        steps += self._rolled_back(records)
        contexts = [
            {"type": "trace", **context, "physical_offset": one["physical_offset"]}
            for one in records
            if one["topic"] == TRACE_TOPIC
            for context in trace_contexts(one["plain_body"] or b"")
            if context.get("msg_id") in unique | {self.given}
        ]
        return sorted([*steps, *contexts], key=_time)

    def _with_key(self, given: str) -> set[int]:
        answer = find_keys(self.store, WantedKeys((given,)), source=self.source, reading=self.reading)
        self.left += answer.not_covered
        found = set(answer.matches)
        if not found and is_id(given):
            for one in readings_of(self.store, given, self.reading):
                found |= set(one.matches)
                self.left += one.unreadable
        return found

    def _with_uniq_keys(self, unique: Iterable[str]) -> set[int]:
        wanted = WantedKeys(sorted(unique))
        answer = find_keys(self.store, wanted, source=self.source, reading=self.reading)
        self.left += answer.not_covered
        return set(answer.matches)

    def _records(self, places: Iterable[int]) -> list[Row]:
        ordered = sorted(places)
        self.truncated |= len(ordered) > MOST
        found: list[Row] = []
        for part in pick(self.store.segments, ordered[:MOST], _COLUMNS):
            if isinstance(part, Missing):
                self.left.append(part.row())
            else:
                found += part.to_pylist()
        return found

    def _step(self, record: Row) -> Row:
        properties = dict(record["properties"] or ())
        stage = stage_of(record["topic"] or "", record["transaction"], properties)
        place = (record["topic"], record["queue_id"])
        passed: list[str] = []
        waiting: list[str] = []
        for group, offset in sorted(self._groups.get(place, {}).items()):
            (passed if offset > record["queue_offset"] else waiting).append(group)
        shown = {name: record[name] for name in _SHOWN if name not in {"transaction", "tags"}}
        beside = {"real_topic": properties.get(REAL_TOPIC), "delay_level": properties.get(DELAY)}
        return {
            "type": "step",
            "stage": stage,
            **shown,
            **{name: one for name, one in beside.items() if one is not None},
            "consumed_by": passed,
            "not_consumed_by": waiting,
        }

    @property
    def _groups(self) -> dict[tuple[str, int], dict[str, int]]:
        if not hasattr(self, "_known"):
            found: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
            for one in committed_offsets(self.store):
                found[one.topic, one.queue_id][one.group] = one.offset
            self._known = found
        return self._known

    def _rolled_back(self, records: list[Row]) -> Iterator[Row]:
        """A step for the op message of each half that has no committed message."""
        halves = {
            (one["queue_id"], one["queue_offset"]): one for one in records if one["topic"] == HALF_TOPIC
        }
        committed = {one["uniq_key"] for one in records if one["transaction"] == "commit"}
        halves = {at: one for at, one in halves.items() if one["uniq_key"] not in committed}
        if not halves:
            return
        columns = ("physical_offset", "queue_id", "queue_offset", "store_timestamp", "topic", "body")
        for batch in records_of(self.store, (OP_HALF_TOPIC,), columns, self.reading, self.left):
            for op in batch.to_pylist():
                for slot in half_offsets(op["body"] or b""):
                    half = halves.get((op["queue_id"], slot))
                    if half is not None:
                        shown = {name: op[name] for name in columns if name != "body"}
                        more = {"uniq_key": half["uniq_key"], "consumed_by": [], "not_consumed_by": []}
                        yield {"type": "step", "stage": "rollback", **shown, **more}


def stage_of(topic: str, transaction: str, properties: dict[str, str]) -> str:
    """What a copy is, by its topic and by what the broker wrote into it."""
    if topic in {HALF_TOPIC, CHECK_MAX_TOPIC}:
        return "half"
    if topic in {SCHEDULE_TOPIC, TIMER_TOPIC}:
        return "schedule"
    if topic.startswith(DLQ_PREFIX):
        return "dlq"
    if topic.startswith(RETRY_PREFIX):
        return "pop" if POP_CK in properties else "retry"
    if transaction in {"commit", "rollback"}:
        return transaction
    moved = REAL_TOPIC in properties and (DELAY in properties or TIMER_OUT_MS in properties)
    return "deliver" if moved else "store"


def _time(row: Row) -> tuple[int, int]:
    time = row.get("store_timestamp", row.get("timestamp", 0))
    return (time if isinstance(time, int) else 0, row["physical_offset"])
