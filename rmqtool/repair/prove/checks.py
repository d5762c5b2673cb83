"""A plan is checked before it is believed: its result, by rooms that had no part in planning it.

Every check is a function of store, plan and reading, and says what was done and what speaks against the plan.
What was wrong in the store before does not.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from formats.commitlog import MAX_TOPIC_LENGTH_V1
from rmqtool.broker.settings import settings_of
from rmqtool.broker.timer_check import CHECK
from rmqtool.broker.traits import traits_of
from rmqtool.check.findings import Severity
from rmqtool.check.state import check_state
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import StartSimulation
from rmqtool.recovery.store_after_start import store_after
from rmqtool.repair.plan import Action, Checked
from rmqtool.repair.prove.beside import lacking_beside
from rmqtool.repair.prove.evidence import Evidence
from rmqtool.repair.prove.light import LightOrder, changed_light_files
from rmqtool.repair.prove.records import Comparison
from rmqtool.repair.prove.result import moved_files, store_with
from rmqtool.repair.prove.started import (
    NOBODY,
    TWICE,
    Begun,
    Costs,
    begin,
    compaction_bytes,
    costs_of,
    given_twice,
    harm_of,
    left_in_compaction,
    lost_by,
    start_of,
    untouched_harm_of,
    whole_start,
)
from rmqtool.repair.prove.verified import VERIFIED, bytes_to_verify, errors_of
from rmqtool.repair.same_bytes import same_from
from rmqtool.scan.counted import Counted
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.scan.units import UNIT
from rmqtool.store.kinds import QUEUE_KINDS, FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.releases import LAST_4, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.recovery.outcome import Outcome
    from rmqtool.repair.plan import Planned
    from rmqtool.repair.prove.started import About
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_OTHERS = LAST_4, RELEASES[-1]
"""a plan for which nobody named a release is held against the last one of each line"""
_OTHER_QUEUES = "DR-BATCH-AS-PLAIN"
_DISPATCHED = "abort", "checkpoint"
"""files that tell a start which records have their entries"""
_QUEUES = tuple(f"{kind}/" for kind in QUEUE_KINDS)
STARTED = "a start of {} was simulated on the result: it does no harm that it would not have done before"
_STARTED_ALL = (
    "starts of {} were simulated on the result: they do no harm that they would not have done before"
)


def check_keep(store: Store, planned: Planned, reading: ReadOptions) -> Checked:
    """Of `recover --policy keep`: one pass over the result's log, and what changes of the store's again."""
    records = "every intact record of the store is in the result, unchanged and at its physical offset"
    releases, remains = [planned.plan.release], list[str]()
    checked = Checked.of((VERIFIED, records), _of_keep(store, planned, reading, releases, remains))
    started = (STARTED if len(releases) == 1 else _STARTED_ALL).format(" and ".join(releases))
    return checked.model_copy(update={"by": (*checked.by, started), "remains": tuple(remains)})


def check_checkpoint(store: Store, planned: Planned, reading: ReadOptions) -> Checked:
    """Of `checkpoint set`: reads what a start reads."""
    state = "the checkpoint was verified: it has no error that the one before does not have"
    return Checked.of((state, STARTED.format(planned.plan.release)), _of_checkpoint(store, planned, reading))


def check_broker(store: Store, planned: Planned, reading: ReadOptions) -> Checked:
    """Of `recover --policy broker`: reads twice what a start reads."""
    both = f"starts of {planned.plan.release} on the store and on the result were simulated"
    same = "both leave the same files of the log and the queues, the same end of the log and of every queue"
    remains: list[str] = []
    checked = Checked.of((f"{both}: {same}",), _of_broker(store, planned, reading, remains))
    if not remains:
        return checked
    later = "the second leaves what a second start on the store would leave, which is not what the first does"
    return checked.model_copy(update={"by": (f"{both}: {later}",), "remains": tuple(remains)})


def _of_keep(
    store: Store, planned: Planned, reading: ReadOptions, releases: list[str], remains: list[str]
) -> Iterator[str]:
    """releases: gets those, beside the plan's, whose starts on store and result were compared."""
    after = store_with(store, planned.edits)
    kernels, access = choose_kernels(data_bytes(after.segments)), reading.access
    counted, settings = Counted(replace(reading, live=False, given=kernels)), settings_of(store)
    size = bytes_to_verify(after)
    compaction = compaction_bytes(store)
    counted.announce(size + compaction)
    own = begin(after, planned.plan.release, settings, counted)
    others = [begin(after, release, settings, counted) for release in _others(planned, after)]
    comparison = Comparison(store, after, planned.edits, kernels, access)
    with counted.stage(size):
        moved = moved_files(store, planned.edits)
        errors = errors_of(after, counted.reading, kernels, comparison.see, moved, planned.skipping)
    comparison.close()
    for one in Evidence(store, after, comparison.changed, kernels, access).intact():
        yield (
            f"the intact record of {one.topic}/{one.queue_id} with queue offset {one.queue_offset}, at "
            f"physical offset {one.physical_offset}, would be lost or moved"
        )
    if comparison.more:
        yield f"{comparison.more} further whole records would be lost or moved"
    remains += lacking_beside(store, after, planned.edits, kernels, access)
    remains += left_in_compaction(store, compaction, counted)
    light = list(changed_light_files(store, after, planned.edits, planned.skipping))
    if errors.listed or errors.appended or light:
        size = bytes_to_verify(store)
        counted.announce(size)
        with counted.stage(size):
            before = errors_of(store, counted.reading, kernels, skipping=planned.skipping)
        beyond = errors.beyond(before)
        # only where the queue of the timers is there `verify` misses their check
        lacking = {CHECK} if store.file(CHECK) is None else set()
        yield from (words for path, words in beyond if path not in lacking)
        remains += (words for path, words in beyond if path in lacking)
        remains += (words for about, words in errors.appended.items() if about not in before.appended)
        order = LightOrder(store, after, access, comparison.last, kernels)
        yield from (
            f"{file.display_path}: entries that lead to messages would move"
            for file, now in light
            if (order.loses(file, now) if before.has_damage_in(file) else order.moves(file, now))
        )
    yield from _harm(store, own, planned, counted, remains)
    for begun in others:
        yield from _harm_of_another(store, begun, planned, counted, releases)


def _others(planned: Planned, after: Store) -> list[str]:
    """Releases for which nobody planned: stores go up and down between releases.

    A store with long topics is not one for a release that does not know them.
    """
    if planned.plan.parameters.get("release") is not None:
        return []
    long = any(len(os.fsencode(one.topic or "")) > MAX_TOPIC_LENGTH_V1 for one in after.queues())
    others = (one for one in _OTHERS if one != planned.plan.release)
    return [one for one in others if not long or traits_of(one).long_topics]


def _harm_of_another(
    store: Store, begun: Begun, planned: Planned, counted: Counted, releases: list[str]
) -> Iterator[str]:
    """New harm that another release does.

    Where it does not start on the store as it is, it is held against the store with all but its queues
    repaired. A store with batch queues is not one for a release that does not know them.
    """
    release = begun.release
    found = costs_of(begun, counted, whole=planned.uneven)
    if found.outcome.refusal is None and not found.harm and not found.lost:
        releases.append(release)
        return
    if any(one.code == _OTHER_QUEUES for one in found.outcome.consequences):
        return
    before = whole_start(store, release, settings_of(store), counted)
    if before.refusal is not None and found.outcome.refusal is None:
        rest = [one for one in planned.edits if not one.change.path.startswith(_QUEUES)]
        before = whole_start(store_with(store, rest), release, settings_of(store), counted)
    if before.refusal is not None:
        return
    releases.append(release)
    known = harm_of(before)
    harmed = {about[1:] for about in known if len(about) > 2 and about[1] is not None}
    known |= _of_skipping(store, release, planned, counted, found, known)
    yield from (
        f"{release}: {words}"
        for about, words in found.harm.items()
        if about not in known and about[1:] not in harmed  # queues that it harms anyway
    )
    if found.lost > lost_by(before):
        yield f"{release}: a start would take {found.lost} messages away from the result"


def new_harm(
    store: Store, after: Store, planned: Planned, reading: ReadOptions, remains: list[str] | None = None
) -> Iterator[str]:
    """Harm that a start does to the result alone; what it does to the store too goes to `remains`."""
    counted = Counted(replace(reading, live=False, given=choose_kernels(data_bytes(after.segments))))
    begun = begin(after, planned.plan.release, settings_of(store), counted)
    yield from _harm(store, begun, planned, counted, remains)


def _harm(
    store: Store, begun: Begun, planned: Planned, counted: Counted, remains: list[str] | None
) -> Iterator[str]:
    found = costs_of(begun, counted, whole=planned.uneven)
    harm, lost = found.harm, found.lost
    if not harm and not lost:
        return
    release, settings = planned.plan.release, settings_of(store)
    before = whole_start(store, release, settings, counted)
    if before.refusal is not None and (before.refusal.path or "").startswith("config/"):
        # a broker that cannot read its tables looks at nothing else: without that, the harm is the store's
        tables = [one for one in planned.edits if one.change.path.startswith("config/")]
        before = whole_start(store_with(store, tables), release, settings, counted)
    known = harm_of(before)
    if (refusal := found.outcome.refusal) is not None:
        known.pop((refusal.code, refusal.path), None)  # a result that nobody can start is none
    known.update(untouched_harm_of(found.outcome, _taking_away(store, planned)))
    known |= _of_skipping(store, release, planned, counted, found, known)
    yield from (words for about, words in harm.items() if about not in known)
    if lost > lost_by(before):
        yield f"a start would take {lost} messages away from the result"
    if remains is not None:
        remains += found.in_words(words for about, words in harm.items() if about in known)


def _of_skipping(
    store: Store, release: str, planned: Planned, counted: Counted, found: Costs, known: Mapping[About, str]
) -> dict[About, str]:
    """Of new harm the queue offsets that queues give out again, for their records skip some.

    A start that refuses the store, or ends its log in front of what they skip, does not come to that. One
    that finds these queues as they are, the repaired log, and what was dispatched of it, does, and gives out
    as many of them or more.
    """
    about_them = {
        about: words
        for about, words in found.harm.items() - known.items()
        if about[0] == TWICE and about[1:] in planned.skipping
    }
    keys = [key for key in planned.skipping if (TWICE, *key) in about_them]
    if not keys:
        return {}
    places = *(f"{place}/" for key in keys for place in _directories(*key)), *_DISPATCHED
    rest = [one for one in planned.edits if not one.change.path.startswith(places)]
    before = whole_start(store_with(store, rest), release, settings_of(store), counted)
    was, now = given_twice(before), given_twice(found.outcome)
    return {about: words for about, words in about_them.items() if now[about[1:]] <= was[about[1:]]}


def _taking_away(store: Store, planned: Planned) -> set[str]:
    """Paths that a plan changes otherwise than by making a file longer."""
    sizes = {one.display_path: one.size for one in store.files}
    changes = [one.change for one in planned.edits]
    grown = (one.action is Action.RESIZE and (one.size or 0) >= sizes.get(one.path, 0) for one in changes)
    return {one.path for one, longer in zip(changes, grown, strict=True) if not longer}


def _start(store: Store, on: Store, planned: Planned, reading: ReadOptions) -> Outcome:
    """A start with the settings of `store` on a store or a view."""
    kernels = choose_kernels(data_bytes(on.segments))
    how = replace(reading, live=False, given=kernels)
    return start_of(on, planned.plan.release, settings_of(store), how)


def _of_checkpoint(store: Store, planned: Planned, reading: ReadOptions) -> Iterator[str]:
    after = store_with(store, planned.edits)
    before = {one.code for one in check_state(store) if one.severity is Severity.ERROR}
    for one in check_state(after):
        if one.severity is Severity.ERROR and one.code not in before:
            yield f"{one.path}: {one.message} ({one.code})"
    yield from new_harm(store, after, planned, reading)


def _of_broker(store: Store, planned: Planned, reading: ReadOptions, remains: list[str]) -> Iterator[str]:
    """What a second start does to the store otherwise than the first is no problem, and goes to `remains`.

    One that deletes empty last segments lets the next one begin further back, where it may meet damage.
    """
    counted = Counted(reading)
    how = replace(counted.reading, live=False, given=choose_kernels(data_bytes(store.segments)))
    first = StartSimulation(store, planned.plan.release, settings_of(store), how, NOBODY, keep_units=True)
    # the other start reads as much, about
    before = first.run(lambda plan: counted.expect(2 * plan.bytes_to_scan), LookBack(0))
    result = store_with(store, planned.edits)
    after = _start(store, result, planned, counted.reading)
    counted.finish()
    yield from _other_removals(before, planned)
    written = {one.path.rpartition("/")[0] for one in planned.plan.changes}
    kept = replace(before, deletes=())
    differences = list(_differences(kept, after, store, result, written))
    if differences and before.refusal is None:
        counted.expect(before.bytes_to_scan)
        second = _start(store, store_after(first.start, started=False), planned, counted.reading)
        counted.finish()
        if second.max_physical_offset != before.max_physical_offset and not any(
            _differences(second, after, store, result, written)
        ):
            remains += [f"the start after this one: {words}" for words in differences]
            return
    yield from differences


def _other_removals(before: Outcome, planned: Planned) -> Iterator[str]:
    put = {one.path for one in planned.plan.changes if one.action is Action.PUT}
    removed = {one.path for one in planned.plan.changes if one.action is Action.REMOVE} - put
    # an unclean stop makes the index again at each start, so that a file of it may come back as it was
    gone = {path for path in before.deletes if path in removed or not path.startswith("index/")}
    for path in sorted(removed ^ (gone - put)):
        word = (
            "would be removed, and a start does not" if path in removed else "stays, and a start removes it"
        )
        yield f"{path}: {word}"


def _differences(
    before: Outcome, after: Outcome, store: Store, result: Store, written: set[str]
) -> Iterator[str]:
    """Where a start on the result leaves something else than another one did. written: directories."""
    # an unclean stop makes the index again at each start
    for path in sorted({path for path in after.deletes if not path.startswith("index/")} - {*before.deletes}):
        yield f"{path}: a start on the result would remove it"
    if (after.refusal is None) != (before.refusal is None):
        yield "a broker starts on the one and refuses the other of store and result"
    if after.max_physical_offset != before.max_physical_offset:
        yield f"the log ends at {after.max_physical_offset}, after a start at {before.max_physical_offset}"
    for key, was, now in _other_ends(before, after, written):
        if was is None or now is None or now < was or not _left_behind(store, result, key, was):
            yield f"queue {key[0]}/{key[1]} ends at {now}, after a start at {was}"


def _directories(topic: str, queue_id: int) -> list[str]:
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    return [f"{kind}/{escape_name(topic)}/{queue_id}" for kind in kinds]


def _left_behind(store: Store, result: Store, key: tuple[str, int], end: int) -> bool:
    """Whether what lies behind the end of a plain queue is what lay there: a later start may look at it."""
    files = [one for one in result.of_kind(FileKind.CONSUMEQUEUE) if (one.topic, one.queue_id) == key]
    bases = [(one, (one.base_offset or 0)) for one in files]
    position = end * UNIT.itemsize
    behind = [(one, max(position - base, 0)) for one, base in bases if base + one.size > position]
    return bool(behind) and all(same_from(one, store.file(one.display_path), start) for one, start in behind)


def _other_ends(
    before: Outcome, after: Outcome, changed: set[str]
) -> Iterator[tuple[tuple[str, int], int | None, int | None]]:
    """Of queues that the plan writes: of others two starts of a broker may know different ends.

    4.9.8 takes a unit of zeros at the beginning of the last file for a message when it starts again.
    """
    was, now = (
        {(one.topic, one.queue_id): one.max_offset for one in outcome.queues} for outcome in (before, after)
    )
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key) and not changed.isdisjoint(_directories(*key)):
            yield key, was.get(key), now.get(key)
