"""Plans that are wrong in one thing are not believed; right ones are."""

from __future__ import annotations

import random
import shutil
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures import apply_case, copy_base, damage_case, strict
from fixtures.stores import HandmadeStore
from formats.consumequeue import PRE_BLANK
from rmqtool.broker.settings import settings_of
from rmqtool.recovery.simulation import reading_for
from rmqtool.repair.broker.policy import plan_broker_policy
from rmqtool.repair.checkpoint import plan_checkpoint
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.planner import KeepOptions, keep
from rmqtool.repair.plan import Action, Change, Edit, Planned, make_planned
from rmqtool.repair.proof import prove
from rmqtool.repair.prove.built import check_rebuild
from rmqtool.repair.prove.checks import check_broker, check_checkpoint, check_keep
from rmqtool.repair.prove.evidence import Evidence
from rmqtool.repair.prove.records import Comparison
from rmqtool.repair.prove.result import store_with
from rmqtool.repair.prove.started import harm_of, start_of
from rmqtool.repair.prove.verified import errors_of
from rmqtool.repair.rebuild import rebuild
from rmqtool.repair.rebuild_options import RebuildOptions
from rmqtool.scan import kernels_python
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

BODY = "v533-record-body-middle-first-abort0"


def write(path: str, position: int, data: bytes) -> Edit:
    change = Change(
        action=Action.WRITE, path=path, position=position, length=len(data), why="test", message="-"
    )
    return Edit(change, Inline(data))


def plan(store: Store, edits: list[Edit], release: str = "5.3.3") -> Planned:
    return make_planned("recover", store, release, {"policy": "keep"}, edits, inputs=store.files)


def opened(case_id: str, place: Path) -> Store:
    case = damage_case(case_id)
    return Store.open(apply_case(case, place), config=config_of(dict(case.settings)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return opened(BODY, tmp_path / "store")


@pytest.fixture
def repaired(store: Store, tmp_path: Path) -> list[Edit]:
    (tmp_path / "work").mkdir()
    return list(keep(store, KeepOptions("5.3.3"), str(tmp_path / "work")).planned.edits)


def some(store: Store, number: int) -> tuple[str, int, strict.Record]:
    """An intact record of the last segment: file, position and what it is."""
    last = next(one for one in reversed(store.segments) if store.segments.has_data(one))
    found = [one for at, one in sorted(strict.carve(store.root).items()) if last.covers(at) and one.placed]
    record = found[number]
    return last.file.path, record.offset - last.base, record


def test_the_plan_of_a_right_planner_is_believed(store: Store, repaired: list[Edit]) -> None:
    checked = check_keep(store, plan(store, repaired), ReadOptions())
    assert (checked.proven, checked.problems, len(checked.by)) == (True, (), 3)


def zeroed(store: Store) -> list[Edit]:
    path, at, record = some(store, 3)
    return [write(path, at, bytes(record.size))]


def renumbered(store: Store) -> list[Edit]:
    """A record gets the next queue offset, and its CRC is as right as before."""
    path, at, record = some(store, -1)
    return [write(path, at + 20, struct.pack(">q", record.queue_offset + 1))]


def swallowed(store: Store) -> list[Edit]:
    """A filler that reaches over intact records, which stay where they are byte for byte."""
    path, at, record = some(store, 3)
    _, behind, second = some(store, 4)
    assert behind == at + record.size
    return [write(path, at, struct.pack(">i", record.size + second.size))]


def removed(store: Store) -> list[Edit]:
    path, _, _ = some(store, 0)
    return [Edit(Change(action=Action.REMOVE, path=path, why="copied-segment", message="-"))]


def cut(store: Store) -> list[Edit]:
    path, at, _ = some(store, 5)
    return [Edit(Change(action=Action.RESIZE, path=path, size=at, why="test", message="-"))]


@pytest.mark.share
@pytest.mark.parametrize("harm", [zeroed, renumbered, swallowed, removed, cut])
def test_a_plan_that_loses_or_moves_an_intact_record_is_not(
    store: Store, repaired: list[Edit], harm: Callable[[Store], list[Edit]]
) -> None:
    checked = check_keep(store, plan(store, [*repaired, *harm(store)]), ReadOptions())
    assert any("intact record" in one for one in checked.problems), checked.problems


def test_nor_one_whose_queues_are_wrong(store: Store, repaired: list[Edit]) -> None:
    queue = next(one for one in store.queues() if one.files and one.topic and "Topic" in one.topic)
    unit = write(queue.files[0].path, 20, struct.pack(">qiq", 1, 100, 0))
    checked = check_keep(store, plan(store, [*repaired, unit]), ReadOptions())
    assert checked.problems
    assert not any("intact record" in one for one in checked.problems)


def test_nor_one_that_a_broker_cannot_start_on(store: Store, repaired: list[Edit]) -> None:
    queue = next(one for one in store.queues() if len(one.files) > 1)
    cut_short = Change(action=Action.RESIZE, path=queue.files[0].path, size=100, why="test", message="-")
    checked = check_keep(store, plan(store, [*repaired, Edit(cut_short)]), ReadOptions())
    assert any("refuses to start" in one for one in checked.problems)


@pytest.mark.parametrize("named", [None, "5.3.3"])
def test_nor_one_that_only_another_release_cannot_start_on(
    store: Store, repaired: list[Edit], named: str | None
) -> None:
    """5.x passes over a directory among its files, 4.9.8 does not start: nobody may have said which comes."""
    path = store.segments[-1].file.path.rpartition("/")[0] + "/held"
    directory = Edit(Change(action=Action.MAKE_DIRECTORY, path=path, why="test", message="-"))
    parameters = {"policy": "keep", "release": named}
    planned = make_planned("recover", store, "5.3.3", parameters, [*repaired, directory], inputs=store.files)
    checked = check_keep(store, planned, ReadOptions())
    assert {one.partition(": ")[0] for one in checked.problems} == (set() if named else {"4.9.8"})


def test_a_plan_is_started_by_both_lines_of_releases(store: Store, repaired: list[Edit]) -> None:
    checked = check_keep(store, plan(store, repaired), ReadOptions())
    assert "starts of 5.3.3 and 4.9.8 were simulated" in checked.by[-1]


def test_a_release_that_cannot_read_long_topics_is_not_asked(
    fresh_golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """65981: 4.9.8 drops the entries of a queue whose records it does not read, rebuilt or not."""
    root = fresh_golden("v533-v2").path
    queue = max(root.glob("consumequeue/*/*"), key=lambda one: len(one.parent.name))
    shutil.rmtree(queue)
    done = rmq("recover", root, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, "starts of 5.3.3 and" in done.stdout) == (0, False), done.stderr


def test_what_was_wrong_before_speaks_against_no_plan(store: Store, tmp_path: Path) -> None:
    touched = write("checkpoint", 100, b"x")
    checked = check_keep(store, plan(store, [touched]), ReadOptions())
    assert checked.problems == ()


SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(8, 300))]


@pytest.mark.share
@pytest.mark.parametrize("seed", SEEDS)
def test_records_that_are_not_as_they_were_are_those_that_a_slow_reader_misses(
    seed: int, tmp_path: Path
) -> None:
    """Any bytes over any places of a log, near each other and far apart, with any bytes between reads."""
    rng = random.Random(seed)
    root = copy_base("v533-a-clean", tmp_path / "store")
    store = Store.open(root)
    edits, segments = [], list(store.segments)
    for _ in range(rng.randint(1, 12)):
        segment = rng.choice(segments)
        at = rng.randrange(segment.size - 1)
        data = rng.randbytes(rng.choice((1, 4, 30, 3000)))
        edits.append(write(segment.file.path, at, data[: segment.size - at]))
    after = store_with(store, edits)
    comparison = Comparison(
        store,
        after,
        edits,
        kernels_python,
        Access("pread"),
        near=rng.choice((1, 100, 5000)),
        most_starts=rng.choice((3, 50, 1 << 17)),
    )
    errors_of(after, ReadOptions(), kernels_python, comparison.see)
    comparison.close()
    reported = {one.physical_offset for one in comparison.changed}
    was = strict.carve(root)
    for edit in edits:
        place = root / edit.change.path
        data = bytearray(place.read_bytes())
        start = edit.change.position or 0
        assert edit.content is not None
        data[start : start + edit.content.size] = edit.content.read(0, edit.content.size)
        place.write_bytes(data)
    now = strict.carve(root)
    assert reported == {at for at, one in was.items() if at not in now or now[at].raw != one.raw}


def test_a_record_that_lies_may_be_put_right(tmp_path: Path) -> None:
    """Its place in the queue has another record, the right one a unit that points at it."""
    store = opened("v533-record-queueoffset-last-mid-abort", tmp_path / "store")
    (tmp_path / "work").mkdir()
    planned = keep(store, KeepOptions("5.3.3"), str(tmp_path / "work")).planned
    after = store_with(store, planned.edits)
    comparison = Comparison(store, after, planned.edits, kernels_python, Access("pread"))
    errors_of(after, ReadOptions(), kernels_python, comparison.see)
    comparison.close()
    assert len(comparison.changed) == 1
    assert not [*Evidence(store, after, comparison.changed, kernels_python, Access("pread")).intact()]


@pytest.mark.parametrize(
    ("number", "stated", "moved"), [(3, 3, True), (5, 5, True), (3, 4, False), (3, 0, False), (0, 0, True)]
)
def test_a_record_that_is_alone_in_its_queue_is_moved_where_another_one_missed_it(
    tmp_path: Path, number: int, stated: int, moved: bool
) -> None:
    """It states queue 0, the plan has it in queue 1, and no entry is left that speaks for either."""
    made = HandmadeStore()
    for _ in range(6):
        made.put("T", b"body", queue_id=1)
    made.write(tmp_path / "store")
    alone, queue = made.stored[number], f"consumequeue/T/1/{0:020d}"
    path, at = made.segment(alone.offset)
    fields, units = made.read(path, at + 12, 16), made.read(queue, 0, 6 * 20)
    made.patch(path, at + 12, struct.pack(">i", 0) + fields[4:8] + struct.pack(">q", stated))
    made.patch(queue, 0, bytes(len(units)))
    store = Store.open(made.root)
    edits = [write(path, at + 12, fields), write(queue, 0, units)]
    assert refused(store, edits) == ([] if moved else [alone.offset])


@pytest.mark.parametrize("behind", [False, True])
def test_a_record_that_states_an_expired_place_behind_later_ones_lies(
    tmp_path: Path, *, behind: bool
) -> None:
    """440212: the place that it states is in front of the log, where nothing can be asked."""
    made = HandmadeStore()
    for number in range(40):
        made.put("T", b"body %d" % number, queue_id=0)
    if not behind:
        made.put("Other", b"body")
    lying = made.put("T", b"body", queue_id=0 if behind else 1)
    made.write(tmp_path / "store")
    made.remove(made.segment(made.stored[0].offset)[0])
    path, at = made.segment(lying.offset)
    right, units = made.read(path, at + 20, 8), lying.unit or ("", 0)
    made.patch(path, at + 20, struct.pack(">q", 2))
    entry = made.read(*units, 20)
    made.patch(*units, bytes(20))
    edits = [write(path, at + 20, right), write(*units, entry)]
    assert refused(Store.open(made.root), edits) == ([] if behind else [lying.offset])


def test_nor_is_it_where_something_else_takes_its_place(tmp_path: Path) -> None:
    """Seed 13399: the queue that misses its first message has a hole for it."""
    made = HandmadeStore()
    alone, lost, last = (made.put("T", b"body", queue_id=queue_id) for queue_id in (0, 1, 1))
    made.write(tmp_path / "store")
    path, at = made.segment(alone.offset)
    _, hole = made.segment(lost.offset)
    moved, into = made.read(path, at, alone.size), made.read(path, hole, lost.size)
    made.patch(path, hole, bytes(lost.size))
    queues = [f"consumequeue/T/{queue_id}/{0:020d}" for queue_id in (0, 1)]
    units = [struct.pack(">qiq", one.offset, one.size, 0) for one in (lost, alone, last)]
    for queue in queues:
        made.patch(queue, 0, bytes(2 * 20))
    store = Store.open(made.root)
    edits = [
        write(path, at, moved[:12] + into[12:16] + moved[16:]),
        write(path, hole, into[:12] + moved[12:16] + into[16:]),
        write(queues[0], 0, units[0]),
        write(queues[1], 0, units[1] + units[2]),
    ]
    assert refused(store, edits) == [alone.offset]


def batches(tmp_path: Path) -> HandmadeStore:
    """Twelve batches of two in a batch queue, written."""
    made = HandmadeStore()
    for number in range(12):
        made.put_batch("Batches", [b"one", b"body %d" % number])
    made.write(tmp_path / "store")
    return made


@pytest.mark.parametrize("right", [False, True])
def test_records_of_a_batch_queue_tell_by_themselves_which_of_them_lies(
    tmp_path: Path, *, right: bool
) -> None:
    """Seed 47120: it is alone in a topic of a flipped letter; or the plan is what flips it."""
    made = batches(tmp_path)
    one = made.stored[6]
    path, at = made.segment(one.offset)
    place = at + made.read(path, at, one.size).index(b"Batches")
    wrong, topic = b"BaTches", b"Batches"
    if not right:
        wrong, topic = topic, wrong
    made.patch(path, place, wrong)
    units, position = one.unit or ("", 0)
    made.patch(units, position, bytes(46))
    edits = [write(path, place, topic)]
    assert refused(Store.open(made.root), edits) == ([] if right else [one.offset])


@pytest.mark.parametrize("right", [False, True])
def test_the_unit_of_a_batch_queue_tells_whether_its_record_lies(tmp_path: Path, *, right: bool) -> None:
    """The queue offset that it states is inside of the batch in front of it: no other record states that."""
    made = batches(tmp_path)
    one = made.stored[6]
    path, at = made.segment(one.offset)
    wrong, true = (one.queue_offset - 1).to_bytes(8, "big"), one.queue_offset.to_bytes(8, "big")
    if not right:
        wrong, true = true, wrong
    made.patch(path, at + 20, wrong)
    assert refused(Store.open(made.root), [write(path, at + 20, true)]) == ([] if right else [one.offset])


@pytest.mark.parametrize("number", [0, 6, 11])
def test_a_damaged_unit_of_a_batch_queue_says_nothing_against_its_record(tmp_path: Path, number: int) -> None:
    """It states its queue offset itself, and that may be what is wrong."""
    made = batches(tmp_path)
    one = made.stored[number]
    wrong = (one.queue_offset ^ 1 << 8).to_bytes(8, "big")
    units, position = one.unit or ("", 0)
    made.patch(units, position + 28, wrong)
    path, place = made.segment(one.offset)
    assert refused(Store.open(made.root), [write(path, place + 20, wrong)]) == [one.offset]


def refused(store: Store, edits: list[Edit]) -> list[int]:
    """Physical offsets of the intact records that a plan moves."""
    comparison = Comparison(store, store_with(store, edits), edits, kernels_python, Access("pread"))
    errors_of(comparison.result, ReadOptions(), kernels_python, comparison.see)
    comparison.close()
    evidence = Evidence(store, comparison.result, comparison.changed, kernels_python, Access("pread"))
    return [one.physical_offset for one in evidence.intact()]


def test_files_as_a_broker_leaves_them(store: Store) -> None:
    planned = plan_broker_policy(store, "5.3.3", settings_of(store), reading_for(store), {})
    assert planned.edits
    assert check_broker(store, planned, ReadOptions()).problems == ()
    changes = [one for one in planned.edits if one.change.action is not Action.REMOVE]
    assert any(
        "a start removes it" in one
        for one in check_broker(store, plan(store, changes), ReadOptions()).problems
    )
    wrong = plan(store, [*planned.edits, *removed_first(store)])
    assert any("would be removed" in one for one in check_broker(store, wrong, ReadOptions()).problems)


def removed_first(store: Store) -> list[Edit]:
    path = store.segments[0].file.path
    return [Edit(Change(action=Action.REMOVE, path=path, why="test", message="-"))]


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_what_a_start_leaves_behind_the_end_of_a_queue_may_be_a_unit_for_the_next(
    tmp_path: Path, release: str
) -> None:
    """Law seed 13024: a flipped bit in the unused rest, in front of which the start builds units."""
    made = HandmadeStore()
    for _ in range(12):
        made.put("Orders", b"body")
    made.write(tmp_path / "store")
    made.add("abort")
    path = f"consumequeue/Orders/0/{0:020d}"
    made.patch(path, 8 * 20, bytes(4 * 20))
    made.patch(path, 12 * 20 + 8, (32).to_bytes(4, "big"))
    store = Store.open(made.root)
    planned = plan_broker_policy(store, release, settings_of(store), reading_for(store), {})
    assert check_broker(store, planned, ReadOptions()).problems == ()
    longer = [*planned.edits, write(path, 13 * 20, struct.pack(">qiq", 0, 100, 0))]
    problems = check_broker(store, plan(store, longer, release), ReadOptions()).problems
    assert any("ends at" in one for one in problems), problems


def test_a_start_that_lets_the_next_one_read_further_back(tmp_path: Path) -> None:
    """Law seed 46088: it deletes two empty last segments, and the next start meets what it did not read."""
    made = HandmadeStore()
    for number in range(90):
        made.put("Orders", b"body %03d" % number * 3)
    made.write(tmp_path / "store")
    last = max(made.log.files())
    spoiled = [one for one in made.stored if one.offset < last - 4096][-5]
    path, at = made.segment(spoiled.offset)
    made.patch(path, made.read(path).index(b"body", at), b"dead")
    for base in (last + 4096, last + 8192):
        made.add(f"commitlog/{base:020d}", bytes(4096))
    store = Store.open(made.root)
    planned = plan_broker_policy(store, "4.9.8", settings_of(store), reading_for(store), {})
    checked = check_broker(store, planned, ReadOptions())
    assert checked.problems == ()
    words = f"the start after this one: the log ends at {spoiled.offset}, after a start at"
    assert any(one.startswith(words) for one in checked.remains)
    assert "which is not what the first does" in checked.by[0]


def test_a_rebuild_is_verified(tmp_path: Path) -> None:
    root = copy_base("v533-a-clean", tmp_path / "store")
    queues = [one for one in Store.open(root).queues() if one.files and one.topic and "Topic" in one.topic]
    queues[0].files[0].absolute.write_bytes(bytes(queues[0].files[0].size))
    store = Store.open(root)
    (tmp_path / "work").mkdir()
    planned = rebuild(store, RebuildOptions("5.3.3"), tmp_path / "work").planned
    assert planned.edits
    assert check_rebuild(store, planned, ReadOptions()).problems == ()
    unit = write(queues[1].files[0].path, 0, struct.pack(">qiq", 1, 100, 0))
    wrong = Planned(planned.plan, (*planned.edits, unit))
    assert check_rebuild(store, wrong, ReadOptions()).problems


def test_a_checkpoint_that_costs_messages_is_reported(tmp_path: Path) -> None:
    """After a crash 4.9.8 dispatches again from where the checkpoint says that queues are whole."""
    store = opened("v498-cq-all-deleted-abort0", tmp_path / "store")
    proof = prove(store, "4.9.8", settings_of(store), reading_for(store))
    safe = plan_checkpoint(store, "4.9.8", {}, proof, {})
    assert check_checkpoint(store, safe, ReadOptions()).problems == ()
    late = {"physic_msg_timestamp": 1 << 45, "logics_msg_timestamp": 1 << 45}
    wrong = plan_checkpoint(store, "4.9.8", {}, proof, late)
    assert check_checkpoint(store, wrong, ReadOptions()).problems


def test_a_blank_unit_is_no_harm_where_no_record_has_its_queue_offset(tmp_path: Path) -> None:
    """Seed 11083: only segments in front of those that a start reads tell that it hides no message."""
    made = HandmadeStore()
    for number in range(200):
        if number == 190:
            made.log.queue_offsets["Orders", 0] += 1
            made.queues["Orders", 0].append(PRE_BLANK)
        made.put("Orders", b"body")
    made.write(tmp_path / "store")
    made.add("abort")
    store = Store.open(made.root)
    path = store.segments[0].file.path
    planned = plan(store, [write(path, 8, made.read(path)[8:9])])
    settings = settings_of(store)
    for whole in (False, True):
        seen = start_of(store, "5.3.3", settings, replace(ReadOptions(), given=kernels_python), whole=whole)
        assert bool(harm_of(seen)) is not whole
    assert check_keep(store, planned, ReadOptions()).problems == ()


def test_entries_of_a_queue_that_skips_queue_offsets_stay(tmp_path: Path) -> None:
    """One that starts give out again beside those that the records skip is the plan's."""
    made, key = HandmadeStore(), ("Orders", 0)
    for number in range(15):
        made.log.queue_offsets[key] += 3 * (number == 8)
        made.put("Orders", b"body %d" % number)
    made.put("Late", b"body")
    made.write(tmp_path / "store")
    made.add("commitlog/..data", b"no broker starts")
    store = Store.open(made.root)
    stray = Edit(Change(action=Action.REMOVE, path="commitlog/..data", why="test", message="-"))
    units = [made.read(*one.unit, 20) for one in made.of("Orders")]  # type: ignore[misc, call-arg]
    path, position = made.of("Orders")[8].unit or ("", 0)
    found = {}
    for name, now in (
        ("cut", [*units[8:12], bytes(60)]),
        ("moved", [PRE_BLANK * 3, *units[8:15]]),
        ("same", units[8:]),
    ):
        edits = [stray, write(path, position, b"".join(now))]
        planned = replace(plan(store, edits), skipping=frozenset({key}))
        checked = check_keep(store, planned, ReadOptions.of(store))
        found[name] = [*checked.problems]
    moved = f"{path}: entries that lead to messages would move"
    assert found["same"] == []
    assert moved in found["cut"]
    assert moved in found["moved"]
    assert any("from 12 on, though messages in the log have 6 of them" in one for one in found["cut"])
