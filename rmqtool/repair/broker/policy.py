"""Planning what a broker does to the files when it loads the store, with nothing destroyed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from formats.checkpoint import CHECKPOINT_SIZE, Checkpoint
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.load import RefusedError
from rmqtool.broker.start import Start
from rmqtool.broker.traits import traits_of
from rmqtool.errors import UsageError
from rmqtool.recovery.loss import measure_loss
from rmqtool.recovery.simulation import StartSimulation
from rmqtool.recovery.truncation import lost_parts
from rmqtool.repair.broker.edits import put_whole
from rmqtool.repair.broker.index import index_edits
from rmqtool.repair.broker.queues import queue_edits
from rmqtool.repair.broker.watching import Watcher
from rmqtool.repair.checkpoint import stored_values
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Cost, Edit, Planned, PlanSummary, make_planned
from rmqtool.scan.counted import Counted
from rmqtool.store.kinds import FileKind
from rmqtool.store.lock import LockState
from rmqtool.store.names import escape_name
from rmqtool.store.unseen import refuse_lost_roots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.load import Refusal
    from rmqtool.broker.settings import StartSettings
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_FREE = LockState(False, None, "this is not a start")
_READ = (
    FileKind.COMMITLOG,
    FileKind.CONSUMEQUEUE,
    FileKind.BATCHCONSUMEQUEUE,
    FileKind.INDEX,
    FileKind.CONFIG,
)
_STATE = ("checkpoint", "abort")


def plan_broker_policy(
    store: Store,
    release: str,
    settings: StartSettings,
    reading: ReadOptions,
    parameters: dict[str, Any],
    command: str = "recover",
) -> Planned:
    """The files as a broker of `release` leaves them directly after it has loaded the store.

    Bytes of the log that recovery gives up stay where they are, as they do with a broker, until something
    is appended; a copy of them, and every file that it deletes, is kept beside the plan. What a broker does
    later (`abort`, dispatching what recovery did not) is left to it. Names of new index files are store
    times, in UTC.

    Raises `UsageError` for stores that the model does not cover (RocksDB queues, DLedger, extension files,
    entries that would be appended between two others), `UnfitStoreError` for a root of the log that is not
    there, and reading errors.
    """
    _demand_modelled(settings)
    refuse_lost_roots(store)
    traits = traits_of(release)
    rules = replace(rules_of(store, release), header_at_stop=False)
    watcher = Watcher(reading.kernels, {} if traits.late_delay_levels else rules.levels)
    counted = Counted(reading)
    start = Start(store, traits, settings, counted.reading, keep_units=True)
    start.dispatcher.watch = watcher.see
    refusal = _load(store, release, settings, counted, start)
    counted.finish()
    edits = [*_removals(start), *_given_up(start), *queue_edits(start, watcher)]
    if start.plan is not None:
        edits += [*index_edits(start, watcher, rules), *_checkpoint(store)]
    made = {one.change.path for one in edits if one.change.action is Action.PUT}
    edits = [one for one in edits if one.change.action is not Action.REMOVE or one.change.path not in made]
    edits = [one for one in edits if not _is_there(store, one)]
    folders = _folders(store, made)
    inputs = [*store.of_kind(*_READ), *(one for one in map(store.file, _STATE) if one is not None)]
    summary = PlanSummary(
        lost=_lost(start, reading), notes=_way_out(refusal), refusal=None if refusal is None else str(refusal)
    )
    return make_planned(
        command, store, release, parameters, [*folders, *edits], inputs=inputs, summary=summary
    )


def _demand_modelled(settings: StartSettings) -> None:
    names = {
        "RocksDB queues": settings.rocksdb_queues,
        "DLedger": settings.dledger,
        "consume queue extension files": settings.extension,
    }
    found = [name for name, used in names.items() if used]
    if found:
        raise UsageError(f"--policy broker does not know what a broker does with {' and '.join(found)}")


def _demand_followed(start: Start) -> None:
    for (topic, _), queue in start.queues.items():
        if isinstance(queue, ConsumeQueue) and queue.uneven and queue.appended:
            raise UsageError(
                f"--policy broker: {queue.files.directory} has a file with an uneven name, behind which a "
                "broker writes entries to no whole place: rmqtool recover gives it the right one"
            )
        if ".." in topic.split("/"):
            raise UsageError(
                f"--policy broker: a broker makes the queues of '{escape_name(topic)}' outside of the store"
            )


def _load(
    store: Store, release: str, settings: StartSettings, counted: Counted, start: Start
) -> Refusal | None:
    """Goes through the load; why it ends early. Files that it deleted before stay deleted."""
    refusal = StartSimulation(store, release, settings, counted.reading, _FREE).refused_early
    if refusal is not None:
        return refusal
    try:
        start.load()
        if start.plan is not None:
            counted.expect(start.plan.bytes_to_scan)
        start.recover()
    except RefusedError as error:
        return error.refusal
    _demand_followed(start)
    return None


def _removals(start: Start) -> Iterator[Edit]:
    raw = {one.display_path: one.path for one in start.store.files}
    there = {one.path for queue in start.queues.values() for one in queue.files.files}
    gone = [*start.log.deleted]
    for queue in start.queues.values():
        gone += [path for path in queue.files.deleted if path not in there]
    for path in dict.fromkeys([*gone, *start.index.deleted]):
        file = start.store.file(raw.get(path, path))
        if file is None:
            continue  # made and deleted again by the same start
        why = file.path.split("/", 1)[0]
        yield Edit(
            Change(
                action=Action.REMOVE,
                path=file.display_path,
                why=why,
                message="recovery deletes it",
                facts={"bytes": file.size},
            )
        )


def _given_up(start: Start) -> Iterator[Edit]:
    """The part of the last segment that recovery gives up, where it holds anything."""
    for part in lost_parts(start):
        file = part.file.file
        if file is None or part.file.path in start.log.deleted or part.position >= file.size:
            continue
        with file.open("pread") as source:
            at, last = source.next_data(part.position), part.position
            while at is not None and at < file.size:
                window = source.window(at, 1 << 20)
                filled = window.nonzero()[0]
                last = at + int(filled[-1]) + 1 if filled.size else last
                at = source.next_data(at + window.size)
        if last > part.position:
            yield Edit(
                Change(
                    action=Action.SET_ASIDE,
                    path=file.display_path,
                    position=part.position,
                    length=last - part.position,
                    why="given-up",
                    message="recovery ends in front of it; the next messages are written over it",
                )
            )


def _checkpoint(store: Store) -> Iterator[Edit]:
    """A missing or short one is made whole, with zeros for what is not there.

    Its times and the confirm offset change in the broker's memory; whether they reach the file while it loads
    is a matter of background threads.
    """
    file = store.file("checkpoint")
    if file is None or file.size < CHECKPOINT_SIZE:
        yield put_whole(
            "checkpoint", Inline(Checkpoint.build(stored_values(store))), "checkpoint", "made whole", None
        )


def _is_there(store: Store, edit: Edit) -> bool:
    """Whether a new file is the one that it replaces: an unclean stop makes the index again each time."""
    file = store.file(edit.change.path)
    if edit.change.action is not Action.PUT or edit.content is None or file is None:
        return False
    if file.size != edit.content.size:
        return False
    at = 0
    with file.open("pread") as source:
        for piece in edit.content.chunks():
            if source.window(at, len(piece)).tobytes() != bytes(piece):
                return False
            at += len(piece)
    return True


def _folders(store: Store, made: set[str]) -> Iterator[Edit]:
    known = {escape_name(one.path) for one in store.directories}
    for path in sorted(made):
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            if folder not in known:
                known.add(folder)
                yield Edit(
                    Change(action=Action.MAKE_DIRECTORY, path=folder, why=parts[0], message="for files in it")
                )


def _lost(start: Start, reading: ReadOptions) -> Cost:
    ends = (start.log.min_offset, start.log.max_offset)
    loss, _ = measure_loss(lost_parts(start), ends, reading)
    return Cost(
        messages=loss.messages,
        bytes=loss.bytes,
        first_timestamp=loss.first_timestamp,
        last_timestamp=loss.last_timestamp,
    )


def _way_out(refusal: Refusal | None) -> tuple[str, ...]:
    if refusal is None:
        return ()
    if refusal.setting is not None:
        return (f"it starts with {refusal.setting} in its configuration",)
    return ("recover without --policy broker plans a store that it starts on",)
