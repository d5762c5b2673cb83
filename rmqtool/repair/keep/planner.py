"""Planning `recover --policy keep`: every intact record survives, and the next start is a clean one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.broker.file_rules import kept_rules_of
from rmqtool.broker.settings import settings_of
from rmqtool.errors import UnfitStoreError
from rmqtool.repair.assumed import assumed_sizes
from rmqtool.repair.keep.behind import front_of_log
from rmqtool.repair.keep.derived import DerivedRepair, with_directories
from rmqtool.repair.keep.log import LogRepair, queues_of
from rmqtool.repair.keep.log_ends import with_ends
from rmqtool.repair.keep.placing import place_segments
from rmqtool.repair.keep.refusals import blocking_edits, refusal_edits
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues, rocksdb_edits, wants_files
from rmqtool.repair.keep.segments import segment_edits, with_log
from rmqtool.repair.keep.state import LogFacts, state_edits
from rmqtool.repair.keep.strays import stray_edits
from rmqtool.repair.keep.timer_log import timer_log_edits
from rmqtool.repair.keep.unfit import NO_RECORD, refuse_unfit
from rmqtool.repair.plan import (
    Action,
    Checked,
    Cost,
    Input,
    Planned,
    PlanSummary,
    Undecided,
    UnprovenOffsets,
    make_planned,
    plan_id,
)
from rmqtool.repair.plan_words import counted, dropped
from rmqtool.repair.prove.in_order import in_order
from rmqtool.repair.prove.result import store_with
from rmqtool.repair.prove.started import Begun, begin, compaction_bytes, costs_of, left_in_compaction
from rmqtool.scan.counted import Counted
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.access import Access
from rmqtool.store.kinds import QUEUE_KINDS, FileKind
from rmqtool.store.layout import Store
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rmqtool.repair.keep.behind import OnlyEntries
    from rmqtool.repair.keep.model import Frame, QueueKey
    from rmqtool.repair.keep.repaired_log import RepairedLog
    from rmqtool.repair.plan import Edit
    from rmqtool.repair.prove.started import Costs
    from rmqtool.store.files import StoreFile

COMMAND = "recover"


@dataclass(frozen=True)
class KeepOptions:
    """release: whose broker will start; named_release: the same where somebody named it.

    keep_bodies: `--damaged-body keep`. donors: stores to take ranges from. reading: how files are read; they
    are copied, never mapped.
    """

    release: str
    named_release: str | None = None
    keep_bodies: bool = False
    donors: tuple[str, ...] = ()
    reading: ReadOptions = field(default_factory=lambda: ReadOptions(Access("pread")))

    def parameters(self) -> dict[str, Any]:
        """All that the plan depends on beside the store, as plain data."""
        body = "keep" if self.keep_bodies else "tombstone"
        return {
            "policy": "keep",
            "release": self.named_release,
            "damaged_body": body,
            "donors": [escape_name(one) for one in self.donors],
        }


@dataclass(frozen=True)
class Kept:
    """The plan, the repaired log behind it and the store as it would be."""

    planned: Planned
    log: RepairedLog
    after: Store


def keep(store: Store, options: KeepOptions, work: str) -> Kept:
    """Plans the repair. work: an empty directory for what is built. Reads the log two or three times.

    Raises `UnfitStoreError` for a store without a record in a commit log, or with something in the place of
    a directory, and `UsageError` for a log that is not a plain one.
    """
    refuse_unfit(store)
    inputs = tuple(Input(path=one.display_path, size=one.size, mtime_ns=one.mtime_ns) for one in _read(store))
    parameters = options.parameters()
    kernels = choose_kernels(data_bytes(store.segments))
    progress = Counted(replace(options.reading, given=kernels))
    access = progress.reading.access
    placing = place_segments(store, kernels, access)
    if not placing.segments:
        shown = escape_name(str(store.given))
        raise UnfitStoreError(f"{shown}: {NO_RECORD}, there is nothing to recover from")
    donors = [Store.open(one) for one in options.donors]
    placing = with_ends(store, placing, donors, kernels, access)
    rules = kept_rules_of(store, options.release)
    log_repair = LogRepair(
        store,
        placing,
        progress.reading,
        plan_id(COMMAND, parameters, inputs),
        rules,
        work,
        keep_bodies=options.keep_bodies,
        donors=donors,
    )
    size = sum(one.size for one in store.segments)
    progress.announce(2 * size)  # the survey, and what queues and index are made of
    start = begin(store, options.release, settings_of(store), progress)
    with progress.stage(size):
        log = log_repair.repair()
    if log.rewrites and not options.donors and in_order(store, options.release, progress):
        log = log.as_it_is(queues_of(store))
    topics = {topic for topic, _ in log.survey.runs} | set(store.topics)
    refuse_blocked(store, topics)
    edits = segment_edits(store, placing, log, work)
    front = front_of_log(store, placing.segments[0].base, placing.in_front, rules)
    database = [*rocksdb_edits(store)] if edits and has_rocksdb_queues(store) else []
    unblocked = [*blocking_edits(store, topics), *refusal_edits(store, options.release, log.survey)]
    after = with_log(store_with(store, unblocked) if unblocked else store, placing, log)
    files = wants_files(store, moved=bool(database))
    with progress.stage(size):
        derived = DerivedRepair(after, options.release, log, files, work, progress).repair()
    queues_and_index = list(with_directories(after, [*database, *derived.edits]))
    edits += queues_and_index
    state = partial(state_edits, store, LogFacts.of(log, derived.full_index_timestamp))
    strays = _strays(store, options, [*unblocked, *edits], state)
    started = store_with(after, [*queues_and_index, *strays])
    timers = timer_log_edits(started, options.release, settings_of(store), progress.reading)
    own = {one.change.path for one in timers}
    unblocked = [one for one in unblocked if one.change.path not in own]
    edits += timers
    refuse_directories(store, edits)
    edits += strays
    edits += state(changed=bool(edits))
    edits = unblocked + edits
    costs, remains = (None, None) if edits else _as_it_is(start, progress, log)
    notes = (
        *_notes(log),
        *derived.notes,
        *front.front_notes(placing.segments[0].base, len(placing.in_front)),
        *derived.behind.behind_notes(log.end),
        *assumed_sizes(store, edits),
        *(one.change.message for one in unblocked if _costs(one)),
    )
    planned = make_planned(
        COMMAND,
        store,
        options.release,
        parameters,
        edits,
        inputs=_read(store),
        summary=PlanSummary(
            saved=_saved(start, progress) if edits else Cost(),
            lost=_lost(log, derived.behind, front),
            refusal=None if costs is None or costs.outcome.refusal is None else str(costs.outcome.refusal),
            unproven_offsets=_unproven(log) if edits else (),
            undecided=_undecided(log) if edits else (),
            notes=notes,
            uneven=log.uneven,
            skipping=frozenset(log.skipping),
        ),
    )
    if remains is not None:
        planned = planned.with_check(remains)
    return Kept(planned, log, after)


def _strays(
    store: Store, options: KeepOptions, edits: list[Edit], state: Callable[..., Iterator[Edit]]
) -> list[Edit]:
    """What lies among mapped files and goes, also by what the result says of the release that wrote it.

    state: what becomes of `abort` and `checkpoint`, which tell of it.
    """
    named = options.named_release is not None
    strays: list[Edit] = []
    for changed in (bool(edits), True):
        result = store_with(store, [*edits, *state(changed=changed)])
        strays = list(stray_edits(store, options.release, [] if named else [store.release, result.release]))
        if not strays:
            break
    return strays


def refuse_blocked(store: Store, topics: set[str]) -> None:
    """Raises `UnfitStoreError` where brokers need a directory and something else is that is no file.

    It may be a link to a disk that is not mounted: what belongs there is perhaps whole.
    """
    for file in store.listing.blocked(topics):
        if not file.regular:
            shown = escape_name(str(store.given))
            raise UnfitStoreError(
                f"{shown}: {file.display_path} is not a directory: move it away, or mount the disk it "
                "leads to"
            )


def refuse_directories(store: Store, edits: Iterable[Edit]) -> None:
    """Raises `UnfitStoreError` for a directory where a file is put: nobody knows what it is for."""
    put = {one.change.path for one in edits if one.change.action is Action.PUT}
    for path in sorted(put & {escape_name(one.path) for one in store.directories}):
        raise UnfitStoreError(f"{path} is a directory, where a file has to lie: move it away and plan again")


def _costs(edit: Edit) -> bool:
    """Whether a part of a configuration table is lost with it."""
    return edit.change.why.startswith("config-") and not edit.change.path.endswith(".bak")


def _read(store: Store) -> list[StoreFile]:
    """The files that the plan rests on."""
    kinds = (
        FileKind.COMMITLOG,
        *QUEUE_KINDS,
        FileKind.INDEX,
        FileKind.CHECKPOINT,
        FileKind.ABORT,
        FileKind.CONFIG,
        FileKind.CONFIG_BAK,
    )
    return [one for one in store.of_kind(*kinds) if one.regular]


def _saved(begun: Begun, progress: Counted) -> Cost:
    """What a broker would give up that starts on the store as it is."""
    with progress.stage(begun.bytes):
        loss = begun.run().loss
    if loss is None:
        return Cost()
    return Cost(
        messages=loss.messages,
        bytes=loss.bytes,
        first_timestamp=loss.first_timestamp,
        last_timestamp=loss.last_timestamp,
    )


def _as_it_is(begun: Begun, progress: Counted, log: RepairedLog) -> tuple[Costs, Checked | None]:
    """What a start costs although nothing is to change, and what is left; why it is refused the plan says."""
    size = compaction_bytes(begun.store)
    progress.announce(size)
    costs = costs_of(begun, progress, whole=log.uneven)
    remains = (*left_in_compaction(begun.store, size, progress), *costs.in_words(costs.harm.values()))
    if costs.outcome.refusal is not None or not remains:
        return costs, None
    return costs, Checked(by=("a start was simulated on the store",), remains=remains)


def _lost(log: RepairedLog, *beside: OnlyEntries) -> Cost:
    """Messages that become tombstones or lay beside the log, and bytes that hold none any more.

    A position that an entry told and that has not even room for a tombstone had a message too.
    """
    filled = [(one.hole, one.filled) for one in log.repaired if one.filled]
    times = [hole.timestamp for hole, one in filled if one.tombstones or one.unplaced or one.without]
    return Cost(
        messages=sum(one.tombstones.records + len(one.without) for _, one in filled)
        + len(log.unplaced)
        + sum(one.messages for one in beside),
        bytes=sum(one.tombstones.bytes for _, one in filled)
        + sum(frame.length for frame in log.unplaced)
        + sum(one.bytes for one in beside),
        first_timestamp=min(times, default=None),
        last_timestamp=max(times, default=None),
    )


def _notes(log: RepairedLog) -> list[str]:
    why = "were reused", "are skipped that no hole has room for"
    kept = "the queue stays as it is", "its messages keep theirs"
    notes = [
        f"queue {key[0]}/{key[1]}: queue offsets {why[key in log.skipping]}, "
        f"{'its entries keep their places' if key in log.ahead.by_queue else kept[key not in log.left]}"
        for key in log.twice
    ]
    unplaced: dict[bool, list[int]] = {True: [], False: []}
    for frame in log.unplaced:
        unplaced[frame.header is not None and frame.header.nameless].append(frame.start)
    if nameless := unplaced[True]:
        notes.append(
            f"the topic of {counted(len(nameless), 'record')}, the first at physical offset {nameless[0]}, "
            "is not UTF-8 or holds a zero byte, and nothing else states a queue: fillers take the place of "
            "what cannot be served"
        )
    if out_of_order := unplaced[False]:
        notes.append(
            f"{counted(len(out_of_order), 'whole message')} out of order in the named queue, the first at "
            f"physical offset {out_of_order[0]}, and nothing tells another queue: lost"
        )
    notes += [
        f"the records at physical offsets {one.start} and {other.start} state the same offset of the same "
        "queue, and "
        f"nothing tells which of them is wrong: the first one {_becomes(frame, 'stays')}, "
        f"the other one {_becomes(other_frame, 'is lost')}"
        for (one, frame), (other, other_frame) in log.undecided
    ]
    notes += [
        f"the record at physical offset {one.start} "
        + (
            f"is alone in queue {one.key[0]}/{one.key[1]}, and other queues miss it: nothing tells which of "
            "them, it stays"
            if one.header is None or one.header.queue_offset == one.slot
            else f"is the next one of another queue or, with one wrong bit in its queue offset, of its own: "
            f"nothing tells which, it {_becomes(one, '')}"
        )
        for one in log.contested
        if one.key is not None
    ]
    notes += [
        f"queue {one.key[0]}/{one.key[1]}: no room in the log for queue offsets {one.first} to {one.last}, "
        f"{'blank entries keep them' if one.key in log.blanks else kept[one.key not in log.left]}"
        for one in log.without
    ]
    unknown = [one.filled.unknown for one in log.repaired if one.filled is not None and one.filled.unknown]
    if unknown:
        notes.append(
            f"{sum(unknown):,} bytes of the log, in {counted(len(unknown), 'range')}, could not be "
            "identified: fillers replace them, and messages that they may have held are not counted as lost"
        )
    notes += [
        f"queue {key[0]}/{key[1]}: {dropped(count, first)}" for key, (count, first) in sorted(log.dropped)
    ]
    return notes


def _becomes(frame: Frame | None, without: str) -> str:
    """What a whole record is now; without a frame."""
    if frame is None or frame.key is None:
        return "is lost" if frame is not None else without
    return f"becomes queue offset {frame.slot} of {frame.key[0]}/{frame.key[1]}"


def _unproven(log: RepairedLog) -> tuple[UnprovenOffsets, ...]:
    """Light queues without an entry behind a hole, whose records may state more than their places."""
    return tuple(
        UnprovenOffsets(
            topic=key[0],
            queue_id=key[1],
            physical_offset=offset,
            messages=sum(run.count for run in log.survey.light[key] if run.start >= offset),
        )
        for key, offset in sorted(log.ahead.unproven.items())
    )


def _undecided(log: RepairedLog) -> tuple[Undecided, ...]:
    """Whole records of which one, or whose queue, was to be believed without a reason."""
    found: list[tuple[QueueKey, int, tuple[int, ...]]] = [
        (one.key, one.first, (one.start, other.start)) for (one, _), (other, _) in log.undecided
    ]
    found += [
        (one.key, one.slot, (one.start,))
        for one in log.contested
        if one.key is not None and one.slot is not None
    ]
    return tuple(
        Undecided(topic=key[0], queue_id=key[1], queue_offset=slot, physical_offsets=offsets)
        for key, slot, offsets in found
    )
