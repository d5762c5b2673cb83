"""Entries of `topics.json` for topics that it does not have, by what lies in the queues and in the log."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rmqtool.query.not_read import not_read
from rmqtool.repair.salvage.topics import topic_entries
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.config_text import config_text
from rmqtool.store.config_types import with_number_keys
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    Key = tuple[str, int]

_MOST_QUEUES = 1 << 16
"""a higher queue number in the log is taken for damage"""
_NAMED = 10
_AT_ONCE = 256
"""batches whose queues are kept before they are counted together"""


def queues_in_log(store: Store, reading: ReadOptions) -> tuple[set[Key], bool]:
    """Topic and number of all queues that the log has messages of, and whether all of it was read."""
    import pyarrow as pa

    how = LogScan(columns=("topic", "queue_id"), checks=Check.TEXT, options=reading)
    parts: list[pa.Table] = []
    whole = True
    for piece in scan_log(store.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            parts.append(_distinct(pa.table(piece.content)))
            if len(parts) > _AT_ONCE:
                parts = [_distinct(pa.concat_tables(parts))]
        elif not_read(piece.segment, piece.content):
            whole = False
    rows = _distinct(pa.concat_tables(parts)).to_pylist() if parts else []
    pairs = ((row["topic"], row["queue_id"]) for row in rows)
    return {(topic, number) for topic, number in pairs if topic and 0 <= number < _MOST_QUEUES}, whole


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(["topic", "queue_id"], use_threads=False).aggregate([])


def queues_on_disk(store: Store) -> dict[Key, bool]:
    """Queues that have a directory, and whether it is one of batch queues."""
    return {
        (one.topic, one.queue_id): kind is FileKind.BATCHCONSUMEQUEUE
        for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
        for one in store.queues(kind)
        if one.topic is not None and one.queue_id is not None
    }


def guessed_topics(
    store: Store, in_log: Iterable[Key], globs: tuple[str, ...] = ()
) -> dict[str, dict[str, Any]]:
    """Entries for the topics that the table does not have, of those named by globs; no light queues.

    As many queues as the highest number asks for, perm 6; what else their settings said is not in the data.
    """
    on_disk = queues_on_disk(store)
    known = store.topics
    every = {
        (topic, number)
        for topic, number in {*on_disk, *in_log}
        if topic not in known
        and not topic.startswith(LMQ_PREFIX)
        and number < _MOST_QUEUES
        and (not globs or any(fnmatchcase(topic, one) for one in globs))
    }
    return topic_entries(sorted(every), {topic for (topic, _), batch in on_disk.items() if batch})


def table_with(data: Any, guessed: Mapping[str, Any]) -> bytes:
    """The text of a topic table with further entries. data: as it was parsed, None for none."""
    made = dict(data) if isinstance(data, dict) else {}
    held = made.get("topicConfigTable")
    made.setdefault("dataVersion", {"counter": 1, "stateVersion": 0, "timestamp": 0})
    made["topicConfigTable"] = {**(held if isinstance(held, dict) else {}), **guessed}
    return config_text(with_number_keys("topics.json", made)).encode()


def guess_notes(guessed: Mapping[str, dict[str, Any]]) -> list[str]:
    """What a plan says of guessed topics: how a running broker gets the same."""
    lines = [f"guess: {update_topic_line(topic, guessed[topic])}" for topic in list(guessed)[:_NAMED]]
    if not lines:
        return []
    more = len(guessed) - len(lines)
    rest = [f"and {more} more topics"] if more else []
    return [*lines, *rest, "these lines do the same on a running broker, without a changed topics.json"]


def update_topic_line(topic: str, entry: dict[str, Any]) -> str:
    """The command of RocketMQ that makes the topic on a running broker instead."""
    import shlex

    queues = entry["readQueueNums"]
    attributes = "".join(f" -a +{key}={value}" for key, value in entry["attributes"].items())
    return (
        f"mqadmin updateTopic -n NAMESERVER:9876 -b BROKER:10911 -t {shlex.quote(topic)} "
        f"-r {queues} -w {queues} -p {entry['perm']}{attributes}"
    )
