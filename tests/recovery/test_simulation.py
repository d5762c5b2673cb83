"""Starts on stores made by hand: what the corpus has no case for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from formats.checkpoint import Checkpoint
from rmqtool.broker.record_check import StopReason
from rmqtool.broker.start import StartPlan
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState
from tests.recovery.stores import SEGMENT, filled, start, with_huge_record, write

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.recovery.outcome import Outcome


def queues(outcome: Outcome) -> dict[tuple[str, int], tuple[int, int]]:
    return {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in outcome.queues}


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_queues_that_are_missing_after_a_clean_stop_are_rebuilt(tmp_path: Path, release: str) -> None:
    log = filled()
    outcome = start(write(tmp_path, log), release)
    assert queues(outcome) == {("T", 0): (0, 15), ("T", 1): (0, 15)}
    assert outcome.max_physical_offset == log.end_offset
    assert outcome.safe_to_start is True


@pytest.mark.parametrize("release", ["5.0.0", "5.1.4", "5.3.1"])
def test_releases_in_between_rebuild_nothing_after_a_clean_stop(tmp_path: Path, release: str) -> None:
    outcome = start(write(tmp_path, filled()), release)
    assert queues(outcome) == {("T", 0): (0, 0), ("T", 1): (0, 0)}
    assert [one.repeated for one in outcome.queues] == [15, 15]
    assert outcome.safe_to_start is False


def test_the_plan_comes_before_the_log_is_read(tmp_path: Path) -> None:
    reported: list[StartPlan] = []
    store = Store.open(write(tmp_path, filled(60)), config=config_of({"mappedFileSizeCommitLog": SEGMENT}))
    outcome = simulate(store, "5.3.1", on_plan=reported.append)
    files = len(store.segments)
    assert reported == [StartPlan(outcome.mode, (files - 3) * SEGMENT, 3 * SEGMENT, -1)]


@pytest.mark.parametrize(("later", "files"), [(0, 2), (-1, 1), (1, 2)])
def test_after_a_crash_it_begins_with_the_last_file_that_is_not_younger_than_the_checkpoint(
    tmp_path: Path, later: int, files: int
) -> None:
    log = filled(40)
    root = write(tmp_path, log)
    first = next(n for n, one in enumerate(log.records) if one.physical_offset == 2 * SEGMENT)
    # `StoreCheckpoint#getMinTimestamp` goes back by three seconds
    time = FIRST_TIME + first + 1 + 3000 + later
    times = dict.fromkeys(("physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp"), time)
    others = dict.fromkeys(("master_flushed_offset", "confirm_physical_offset"), 0)
    (root / "checkpoint").write_bytes(Checkpoint.build(times | others))
    (root / "abort").touch()
    assert start(root).start_segment == files * SEGMENT


@pytest.mark.parametrize(("release", "starts"), [("4.9.8", False), ("5.1.2", False), ("5.1.3", True)])
def test_a_last_file_of_no_bytes_is_deleted_since_5_1_3(tmp_path: Path, release: str, starts: bool) -> None:
    root = write(tmp_path, filled(40))
    empty = f"commitlog/{10 * SEGMENT:020d}"
    (root / empty).touch()
    outcome = start(root, release)
    assert outcome.starts is starts
    assert (empty in outcome.deletes) is starts


@pytest.mark.parametrize(("release", "last_three"), [("4.9.8", True), ("5.3.1", True), ("5.3.2", False)])
def test_a_clean_start_begins_three_files_back_or_where_the_queues_end(
    tmp_path: Path, release: str, last_three: bool
) -> None:
    root = write(tmp_path, filled(60))
    files = len(list((root / "commitlog").iterdir()))
    assert start(root, release).start_segment == (files - 3 if last_three else 0) * SEGMENT


@pytest.mark.parametrize("size", [SEGMENT - 1, SEGMENT + 1, 2 * SEGMENT])
@pytest.mark.parametrize("number", [0, 1])
def test_a_segment_of_another_length_refuses(tmp_path: Path, number: int, size: int) -> None:
    root = write(tmp_path, filled(40))
    with (root / "commitlog" / f"{number * SEGMENT:020d}").open("r+b") as file:
        file.truncate(size)
    outcome = start(root)
    assert outcome.starts is False
    assert {one.code for one in outcome.consequences if one.severity == "error"} == {"DR-REFUSE-LENGTH"}


def test_files_before_the_start_may_be_left_out(tmp_path: Path) -> None:
    store = Store.open(write(tmp_path, filled(60)), config=config_of({"mappedFileSizeCommitLog": SEGMENT}))
    outcome = simulate(store, "5.3.1", look_back=LookBack(0))
    assert outcome.not_looked_at == tuple(one.file.path for one in list(store.segments)[:-3])
    assert not outcome.complete


def test_a_store_that_is_held_does_not_start_and_may_change(tmp_path: Path) -> None:
    outcome = start(write(tmp_path, filled()), lock=LockState(True, 7, "held"))
    assert outcome.refusal is not None
    assert outcome.refusal.code == "lock-held"
    assert [one.what for one in outcome.timing_dependent] == ["live-store"]


@pytest.mark.parametrize(("release", "depends"), [("4.9.8", ["heap"]), ("5.3.1", ["heap"]), ("5.3.2", [])])
def test_a_huge_stated_size_depends_on_the_heap(tmp_path: Path, release: str, depends: list[str]) -> None:
    place = with_huge_record(tmp_path)
    outcome = start(tmp_path, release)
    assert (outcome.stop_offset, outcome.stop_reason) == (place, StopReason.BAD_SIZE)
    assert [one.what for one in outcome.timing_dependent] == depends
    assert outcome.loss is not None
    assert outcome.loss.messages == 9


def test_a_size_beyond_any_array_kills_the_process(tmp_path: Path) -> None:
    log = filled(5)
    path = write(tmp_path, log) / "commitlog" / f"{0:020d}"
    raw = bytearray(path.read_bytes())
    raw[:4] = 0x7FFFFFFF.to_bytes(4, "big")
    path.write_bytes(raw)
    refusal = start(tmp_path, "4.9.8").refusal
    assert refusal is not None
    assert (refusal.code, refusal.path) == ("record-too-large", "commitlog/00000000000000000000")
    assert start(tmp_path, "5.3.3").refusal is None


def test_light_queues_get_units_of_their_own(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(4):
        lists = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "INNER_MULTI_QUEUE_OFFSET": f"{number},{number}"}
        log.put("T", b"x", lists)
    root = write(tmp_path, log)
    found = queues(start(root, enableMultiDispatch="true", enableLmq="true"))
    assert found == {("%LMQ%a", 0): (0, 4), ("%LMQ%b", 0): (0, 4), ("T", 0): (0, 4)}
    assert set(queues(start(root))) == {("T", 0)}


def test_an_offset_that_is_none_stops_the_load(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=SEGMENT)
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "plain,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",4"})
    refusal = start(write(tmp_path, log), enableMultiDispatch="true", enableLmq="true").refusal
    assert refusal is not None
    assert refusal.code == "multi-dispatch"


def test_a_delayed_record_whose_level_is_no_number_ends_recovery(tmp_path: Path) -> None:
    log = filled(5)
    bad = log.put("SCHEDULE_TOPIC_XXXX", b"x", {"DELAY": "soon"})
    log.put("T", b"x")
    outcome = start(write(tmp_path, log))
    assert (outcome.stop_offset, outcome.stop_reason) == (bad.physical_offset, StopReason.BAD_FIELDS)


def test_of_two_delay_levels_the_last_counts(tmp_path: Path) -> None:
    """The run is looked at by a pattern, which must not be content with the first."""
    log = filled(5)
    bad = log.put("SCHEDULE_TOPIC_XXXX", b"x", {"DELAZ": "3", "DELAY": "soon"})
    log.put("T", b"x")
    root = write(tmp_path, log)
    path = root / "commitlog" / f"{0:020d}"
    path.write_bytes(path.read_bytes().replace(b"DELAZ", b"DELAY"))
    outcome = start(root)
    assert (outcome.stop_offset, outcome.stop_reason) == (bad.physical_offset, StopReason.BAD_FIELDS)


@pytest.mark.parametrize(("release", "taken"), [("4.9.8", False), ("5.0.0", False), ("5.1.0", True)])
def test_long_topics_are_read_since_they_exist(tmp_path: Path, release: str, taken: bool) -> None:
    log = filled(3)
    long = log.put("t" * 200, b"x")
    outcome = start(write(tmp_path, log), release)
    assert outcome.stop_offset == (long.end if taken else long.physical_offset)
    assert outcome.stop_reason == (StopReason.ZERO_TAIL if taken else StopReason.BAD_MAGIC)


def test_messages_of_a_deleted_topic_are_nobodys(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{"Other":{"topicName":"Other"}}}')
    outcome = start(root, "5.3.1")
    assert outcome.queues == ()
    assert outcome.safe_to_start is True


def test_a_broker_ends_before_its_store_when_a_table_refuses(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "abort").touch()
    (root / "config").mkdir()
    for name in ("topics.json", "topics.json.bak"):
        (root / "config" / name).write_text("{")
    outcome = start(root)
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.refusal.path) == ("config-unparsable", "config/topics.json")
    assert outcome.deletes == ()


def test_queues_of_the_wrong_kind_refuse(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "consumequeue" / "T" / "0").mkdir(parents=True)
    (root / "config").mkdir()
    attributes = '{"topicConfigTable":{"T":{"topicName":"T","attributes":{"queue.type":"BatchCQ"}}}}'
    (root / "config" / "topics.json").write_text(attributes)
    refusal = start(root).refusal
    assert refusal is not None
    assert (refusal.code, refusal.path) == ("queue-type", "consumequeue/T/0")
    assert start(root, "4.9.8").refusal is None


def test_an_empty_store_starts(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    outcome = start(tmp_path)
    assert outcome.starts
    assert (outcome.min_physical_offset, outcome.max_physical_offset) == (-1, 0)
    assert outcome.safe_to_start is True


@pytest.mark.parametrize("release", ["5.1.4", "5.3.3"])
def test_a_wrong_queue_offset_harms_no_more_messages_than_there_are(tmp_path: Path, release: str) -> None:
    """No CRC covers a queue offset: one of 2^40 made a million million of them reused."""
    log = filled()
    log.queue_offsets["T", 0] = 1 << 40
    log.put("T", b"x", queue_id=0)
    outcome = start(write(tmp_path, log), release)
    queue = next(one for one in outcome.queues if one.queue_id == 0)
    assert 0 < queue.repeated <= 16
    assert 0 <= queue.hidden <= 16
    assert queue.repeated_to == (1 << 40) + 1
