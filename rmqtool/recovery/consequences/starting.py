"""Whether the broker starts, how it recovers, and which settings decide about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.checkpoint import min_timestamp
from rmqtool.broker.load import leads_nowhere
from rmqtool.broker.record_check import StopReason
from rmqtool.broker.start import Mode
from rmqtool.broker.timer_log import in_use
from rmqtool.broker.traits import NormalStart
from rmqtool.recovery.consequences.consequence import Consequence, consequence
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import parse_base_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.recovery.consequences.finding_context import FindingContext

CODES = {
    "file-length": "DR-REFUSE-LENGTH",
    "file-name": "DR-REFUSE-NAME",
    "config-unparsable": "DR-REFUSE-CONFIG",
    "checkpoint-directory": "DR-REFUSE-CHECKPOINT",
    "abort-directory": "DR-REFUSE-ABORT",
    "lock-directory": "DR-REFUSE-LOCK",
    "queue-type": "DR-REFUSE-QUEUE-TYPE",
    "record-too-large": "DR-REFUSE-RECORD-SIZE",
    "multi-dispatch": "DR-REFUSE-MULTI-DISPATCH",
    "extension": "DR-REFUSE-EXTENSION",
    "negative-position": "DR-REFUSE-ZERO-FILE",
    "dispatch-stuck": "DR-REFUSE-STUCK",
    "index-unopenable": "DR-REFUSE-INDEX",
    "timer-wheel-length": "DR-REFUSE-TIMER-WHEEL",
    "timer-file": "DR-REFUSE-TIMER-FILE",
    "compaction": "DR-REFUSE-COMPACTION",
    "lock-held": "DR-LOCK-HELD",
}
"""of refusals"""


_BLOCKED = {
    "commitlog": "every new message is refused",
    "consumequeue": "messages do not reach their consumers, and their queue offsets are reused",
    "index": "dispatching ends permanently at the first new message: no later one reaches its consumers",
    "config": "topics, groups and consumer offsets are forgotten with each stop",
    "timerlog": "messages with a delivery time are never delivered",
}
_OPENED = (
    FileKind.COMMITLOG,
    FileKind.CONSUMEQUEUE,
    FileKind.BATCHCONSUMEQUEUE,
    FileKind.CHECKPOINT,
    FileKind.LOCK,
)
"""files that a start opens for writing: `DefaultMappedFile#init`, `StoreCheckpoint`, `DefaultMessageStore`"""
_NAMED = 10
_BATCH = FileKind.BATCHCONSUMEQUEUE.value
_FORGETS = {
    "topics.json": "topics that are made or changed are forgotten with each stop",
    "subscriptionGroup.json": "groups that are made or changed are forgotten with each stop",
    "consumerOffset.json": "consumers begin again at old offsets after each stop",
    "lmqConsumerOffset.json": "consumers of light queues begin again at old offsets after each stop",
    "delayOffset.json": "delayed messages are delivered again after each stop",
}
"""what is lost when a table is not saved; of the others a broker makes what it needs"""


def refusals(scene: FindingContext) -> Iterator[Consequence]:
    """Why there is no start, and what it costs all the same."""
    outcome, start = scene.outcome, scene.start
    refusal, lock = outcome.refusal, outcome.lock
    held = lock is not None and lock.held
    if refusal is not None and not (held and refusal.code == "lock-held"):
        where = [refusal.path] if refusal.path else []
        shown = f"{refusal.path}: {refusal.message}" if refusal.path else refusal.message
        reached = start.reput.offset if start.reput else None
        yield consequence(CODES[refusal.code], *where, reason=shown, offset=reached, end=start.log.max_offset)
        if outcome.deletes and not held:
            yield consequence("DR-REFUSED-LATE", *outcome.deletes, count=len(outcome.deletes))
    if held and lock is not None:
        holder = f" (process {lock.pid})" if lock.pid else ""
        yield consequence("DR-LOCK-HELD", "lock", holder=holder, pid=lock.pid)
        if outcome.deletes:
            yield consequence("DR-SECOND-START", *outcome.deletes, count=len(outcome.deletes))


def recovery(scene: FindingContext) -> Iterator[Consequence]:
    """Where recovery begins and why."""
    outcome, start = scene.outcome, scene.start
    lock = outcome.lock
    if lock is not None and (lock.held is None or "other hosts" in lock.reason):
        yield consequence("DR-LOCK-UNKNOWN", "lock", reason=lock.reason)
    if start.plan is None or not start.loaded:
        return
    if leads_nowhere(start.store.file("abort")) and not start.traits.abort_is_written:
        yield consequence("DR-ABORT-LINK", "abort")
    first = start.plan.start_segment
    if outcome.mode is Mode.ABNORMAL:
        yield consequence("DR-ABNORMAL", "abort", offset=first)
    if start.first_file:
        before = [one.path for one in start.loaded[: start.first_file]]
        yield consequence("DR-UNREAD-FILES", *before, count=len(before), offset=first)
    else:
        yield from _full_scan(scene)
    if outcome.mode is Mode.ABNORMAL and start.witness.latest is not None:
        until = min_timestamp(start.checkpoint)
        loss = outcome.loss
        if until > start.witness.latest and not (loss is not None and loss.messages):
            yield consequence("DR-CHECKPOINT-FUTURE", "checkpoint", until=until, latest=start.witness.latest)


def _full_scan(scene: FindingContext) -> Iterator[Consequence]:
    """Recovery from the first file on although there are others."""
    start, known = scene.start, scene.start.known
    if len(start.loaded) == 1:
        return
    if scene.outcome.mode is Mode.NORMAL:
        if start.traits.normal_start is NormalStart.LAST_THREE:
            return
        reason = "no queue says how far it got" if known < 0 else "no queue got further than the first file"
    elif min_timestamp(start.checkpoint) == 0:
        reason = "the checkpoint is missing or zero"
    else:
        reason = "no file begins before the time of the checkpoint"
    yield consequence(
        "DR-FULL-SCAN", bytes=scene.outcome.bytes_to_scan, files=len(start.loaded), reason=reason
    )


def blocked(scene: FindingContext) -> Iterator[Consequence]:
    """Places where the broker has to make files and cannot (`MappedFile#init`, `ConfigManager#persist`)."""
    start = scene.start
    if start.settings.dledger:
        return
    topics = {key[0] for key in (*start.queues, *start.spans.of())} | set(start.store.topics)
    for path in (one.display_path for one in start.listing.blocked(topics)):
        kind = path.partition("/")[0]
        if not (in_use(start) if kind == "timerlog" else kind != _BATCH or start.traits.typed_queues):
            continue
        if path == "index" and not start.settings.index_enabled:
            yield consequence("DR-BLOCKED", path, path=path, what="no message is found by its key")
        else:
            what = _BLOCKED.get(path, _BLOCKED["consumequeue"])
            yield consequence("DR-BLOCKED-DIRECTORY", path, path=path, what=what)


def blocked_files(scene: FindingContext) -> Iterator[Consequence]:
    """Directories in the place of a table, or of a file that log, queue or timer log grow into, at some time.

    `ConfigManager#persist`, `AllocateMappedFileService#mmapOperation`.
    """
    start = scene.start
    grow = [(start.log, "new messages are refused when the log has grown that far")]
    grow += [(queue.files, _BLOCKED["consumequeue"]) for queue in start.queues.values()]
    if start.timer_log is not None and in_use(start):
        grow.append((start.timer_log, _BLOCKED["timerlog"]))
    for files, what in grow:
        for entry in start.listing.entries(files.directory):
            base = parse_base_offset(entry.name) if entry.file is None else None
            if base is None or files.path_of(base) != entry.path:
                continue
            if base >= files.max_offset or any(one.base == base for one in files.files):
                yield consequence("DR-BLOCKED-FILE", entry.path, path=entry.path, what=what)
    for path, table in start.listing.unsavable():
        if table in _FORGETS:
            yield consequence("DR-BLOCKED-FILE", path, path=path, what=_FORGETS[table])


def denied(scene: FindingContext) -> Iterator[Consequence]:
    """Files of a start that the owner of the store may not write, among others that he may.

    Where he may write none of them nobody knows as which user the broker runs.
    """
    store, traits = scene.start.store, scene.start.traits
    kinds = list(_OPENED)
    kinds += [FileKind.INDEX] * traits.index_failure_refuses + [FileKind.ABORT] * traits.abort_is_written
    files = [file for file in store.of_kind(*kinds) if file.regular]
    paths = [file.display_path for file in files if file.denied]
    if 0 < len(paths) < len(files):
        yield consequence("DR-OTHER-OWNER", *paths[:_NAMED], count=len(paths), path=paths[0])


def settings(scene: FindingContext) -> Iterator[Consequence]:
    """What the settings make of this store."""
    start, end = scene.start, scene.start.end
    if not start.settings.check_crc:
        yield consequence("DR-CRC-OFF")
    if end is not None:
        path = start.loaded[end.file].path
        if end.reason is StopReason.BAD_PROPERTY_CRC:
            yield consequence("DR-PROPERTY-CRC", path, offset=end.offset)
        if end.reason is StopReason.NO_DUP_INFO:
            yield consequence("DR-DUP-INFO", path, offset=end.offset)
    for one in scene.outcome.timing_dependent:
        if one.what == "heap":
            yield consequence("DR-HEAP", reason=one.message)
    if start.settings.rocksdb_queues and scene.outcome.mode is Mode.ABNORMAL:
        yield consequence("DR-ROCKSDB-QUEUES", "consumequeue")
