"""A log through the builder: damage, odd topics, batches, further queues."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures.builder import HandmadeLog
from formats.consumequeue import PRE_BLANK
from formats.properties import INNER_BASE, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, INNER_NUM
from rmqtool.broker.file_rules import FileRules
from rmqtool.build.builder import QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.scan.events import Records
from rmqtool.scan.multi import MultiDispatch
from rmqtool.scan.segment import SegmentScan
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.layout import Store
from tests.build.building import build, files_of, kernel_modules, same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

RULES = FileRules(consume_queue_size=200, batch_queue_size=460, hash_slots=10, index_items=50)
KERNELS = pytest.mark.parametrize(
    "kernels", kernel_modules(), ids=lambda module: module.__name__.rpartition(".")[2]
)


def log_of(root: Path, count: int, **fields: Any) -> HandmadeLog:
    """Messages of a log of several segments, two queues in turn."""
    log = HandmadeLog(segment_size=1024)
    for number in range(count):
        log.put("TopicTest", b"body", {"KEYS": f"k{number}", "TAGS": "TagA"}, queue_id=number % 2, **fields)
    log.write(root / "commitlog")
    return log


def units_of(out: Path, queue: str) -> np.ndarray[Any, Any]:
    files = files_of(out, f"consumequeue/{queue}")
    return np.frombuffer(b"".join(files.values()), UNIT)


@KERNELS
@pytest.mark.parametrize("jobs", [1, 3])
def test_units_and_items_lead_to_the_records(kernels: ModuleType, jobs: int, tmp_path: Path) -> None:
    log = log_of(tmp_path / "store", 40)
    builder, heard = build(Store.open(tmp_path / "store"), RULES, tmp_path / "out", kernels, jobs)
    for queue_id in (0, 1):
        units = units_of(tmp_path / "out", f"TopicTest/{queue_id}")[:20]
        assert units["physical_offset"].tolist() == [one.physical_offset for one in log.records[queue_id::2]]
    assert builder.records == 40
    assert builder.index is not None
    assert builder.index.items == 40
    assert not heard.gaps


@KERNELS
def test_positions_are_kept_behind_damage(kernels: ModuleType, tmp_path: Path) -> None:
    """A record that is overwritten, and a missing file: their slots get blank units, all others their own."""
    log = log_of(tmp_path / "store", 40)
    paths = sorted((tmp_path / "store" / "commitlog").iterdir())
    bases = [int(path.name) for path in paths]
    lost = {3, *(n for n, one in enumerate(log.records) if bases[2] <= one.physical_offset < bases[3])}
    third = log.records[3]
    with paths[0].open("r+b") as file:
        file.seek(third.physical_offset)
        file.write(b"x" * len(third.data))
    paths[2].unlink()
    builder, heard = build(Store.open(tmp_path / "store"), RULES, tmp_path / "out", kernels)
    for queue_id in (0, 1):
        units = units_of(tmp_path / "out", f"TopicTest/{queue_id}")[:20]
        for slot, number in enumerate(range(queue_id, 40, 2)):
            if number in lost:
                assert units[slot].tobytes() == PRE_BLANK
            else:
                assert units["physical_offset"][slot] == log.records[number].physical_offset
    assert [one.reason for one in heard.gaps] == ["bad_magic", "missing"]
    assert heard.gaps[0].physical_offset == third.physical_offset
    assert heard.lost_bytes == len(third.data) + 1024
    assert builder.records == 40 - len(lost)


@KERNELS
def test_a_body_that_fails_its_crc_is_built_and_reported(kernels: ModuleType, tmp_path: Path) -> None:
    log = log_of(tmp_path / "store", 8)
    path = min((tmp_path / "store" / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    place = data.index(b"body", log.records[2].physical_offset)
    data[place] ^= 1
    path.write_bytes(data)
    builder, heard = build(Store.open(tmp_path / "store"), RULES, tmp_path / "out", kernels)
    assert builder.records == 8
    assert [(one.physical_offset, one.reason) for one in heard.bad_bodies] == [
        (log.records[2].physical_offset, "crc")
    ]


@KERNELS
@pytest.mark.parametrize("topic", ["", "..", "a/../../b", "/etc", "nul\0", "T" * 127 + "é" * 100])
def test_no_topic_leads_out_of_the_directory(kernels: ModuleType, topic: str, tmp_path: Path) -> None:
    log = HandmadeLog()
    log.put(topic, b"body", {"KEYS": "k"})
    log.put("Good", b"body", {"KEYS": "k"})
    log.write(tmp_path / "store" / "commitlog")
    before = sorted(tmp_path.iterdir())
    builder, _ = build(Store.open(tmp_path / "store"), RULES, tmp_path / "out", kernels)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "out", *before]
    assert list(files_of(tmp_path / "out", "consumequeue")) == [f"consumequeue/Good/0/{0:020d}"]
    assert builder.queues is not None
    assert builder.queues.left.nameless == 1


@KERNELS
def test_batches_go_to_batch_queues_of_their_topics(kernels: ModuleType, tmp_path: Path) -> None:
    log = HandmadeLog()
    for topic in ("Batch", "Plain"):
        for base in (0, 3):
            log.put(topic, b"body", {INNER_BASE: str(base), INNER_NUM: "3"}, queue_offset=base)
    log.put("Batch", b"body", queue_offset=6)
    log.write(tmp_path / "store" / "commitlog")
    rules = FileRules(consume_queue_size=200, batch_queue_size=460, batch_topics=frozenset({"Batch"}))
    build(Store.open(tmp_path / "store"), rules, tmp_path / "out", kernels)
    (data,) = files_of(tmp_path / "out", "batchconsumequeue").values()
    units = np.frombuffer(data, BATCH_UNIT)[:3]
    assert units["base_offset"].tolist() == [0, 3, 6]
    assert units["batch_size"].tolist() == [3, 3, 1]
    assert list(files_of(tmp_path / "out", "consumequeue")) == [f"consumequeue/Plain/0/{0:020d}"]


@KERNELS
def test_further_queues_get_units_in_the_order_of_the_log(kernels: ModuleType, tmp_path: Path) -> None:
    """The queue of another topic, whose own records lie between, and lists that say nothing."""
    log = HandmadeLog()
    for number in range(3):
        lists = {INNER_MULTI_DISPATCH: "%LMQ%a,Other", INNER_MULTI_QUEUE_OFFSET: f"{number},{2 * number}"}
        log.put("TopicTest", b"body", lists)
        log.put("Other", b"body", queue_offset=2 * number + 1)
    log.put("TopicTest", b"body", {INNER_MULTI_DISPATCH: "%LMQ%a,b", INNER_MULTI_QUEUE_OFFSET: "9"})
    log.put("TopicTest", b"body", {INNER_MULTI_DISPATCH: "%LMQ%a", INNER_MULTI_QUEUE_OFFSET: "x"})
    log.write(tmp_path / "store" / "commitlog")
    rules = FileRules(consume_queue_size=200, multi_dispatch=MultiDispatch.ALL_TOPICS, lmq=True)
    builder, _ = build(Store.open(tmp_path / "store"), rules, tmp_path / "out", kernels)
    places = [one.physical_offset for one in log.records]
    assert units_of(tmp_path / "out", "%LMQ%a/0")["physical_offset"][:4].tolist() == [*places[0:6:2], 0]
    assert units_of(tmp_path / "out", "Other/0")["physical_offset"][:7].tolist() == [*places[:6], 0]
    assert builder.queues is not None
    assert (builder.queues.left.unlisted, builder.queues.left.numberless) == (1, 1)


def test_both_kernels_write_the_same(golden: Callable[[str], Any], tmp_path: Path) -> None:
    store = Store.open(golden("v533-edge").path)
    outs = []
    for number, kernels in enumerate(kernel_modules()):
        build(store, RULES, tmp_path / str(number), kernels)
        outs.append(files_of(tmp_path / str(number)))
    assert same(outs[0], outs[-1]) == []


@pytest.mark.share
@KERNELS
@pytest.mark.parametrize(("jobs", "seed"), [(1, 0), (2, 1)])
def test_runs_by_queues_build_what_their_records_do(
    kernels: ModuleType, jobs: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions, delays, lists of queues, batches, bad bodies and damage among messages of 300 queues."""
    choose = random.Random(seed)
    log = HandmadeLog(segment_size=1 << 17)
    odd = dict(zip(choose.sample(range(4000), 10), 2 * list(range(5)), strict=True))
    for number in range(4000):
        place = {"queue_id": number % 300} if number > 700 else {"queue_id": number % 3}
        properties = {"KEYS": f"k{number} k{number // 2}", "TAGS": f"Tag{number % 4}"}
        topic = f"Topic{number % 5}"
        if number % 11 == 0:
            place["sys_flag"] = choose.choice([0, 4, 8, 12])
        if number % 13 == 0:
            topic, properties["DELAY"] = "SCHEDULE_TOPIC_XXXX", "3"
        match odd.get(number):
            case 0:
                place["body_crc"] = 7
            case 1:
                properties |= {INNER_MULTI_DISPATCH: "%LMQ%a,%LMQ%b", INNER_MULTI_QUEUE_OFFSET: f"{number},3"}
            case 2:
                place["sys_flag"] = 0x80
                properties |= {INNER_BASE: str(number), INNER_NUM: "3"}
            case 3:
                place["physical_offset"] = 5
            case 4:
                log.put_raw(b"damage")
        log.put(topic, b"body", properties, **place)
    log.write(tmp_path / "store" / "commitlog")
    rules = replace(RULES, multi_dispatch=MultiDispatch.USER_TOPICS, plain_topics=frozenset({"Topic1"}))
    store = Store.open(tmp_path / "store")
    wanted, heard = build(store, rules, tmp_path / "wanted", kernels, jobs, one_by_one=True)
    taken: list[int] = []
    take = QueueBuilder.take_placed

    def watched(self: QueueBuilder, placed: Any, records: int) -> None:
        taken.append(records)
        take(self, placed, records)

    monkeypatch.setattr(QueueBuilder, "take_placed", watched)
    builder, found = build(store, rules, tmp_path / "found", kernels, jobs)
    assert sum(taken) > 500
    assert same(files_of(tmp_path / "wanted"), files_of(tmp_path / "found")) == []
    assert found == heard
    assert (builder.records, builder.elsewhere) == (wanted.records, wanted.elsewhere)
    assert builder.queues is not None
    assert wanted.queues is not None
    assert builder.queues.left == wanted.queues.left
    assert builder.queues.queues.built() == wanted.queues.queues.built()


@KERNELS
def test_bytes_may_change_between_the_scan_and_the_copy(kernels: ModuleType, tmp_path: Path) -> None:
    """Of a mapped log; lists of queues that are no longer UTF-8 are decoded as Java does."""
    log = HandmadeLog()
    for number in range(3):
        lists = {INNER_MULTI_DISPATCH: "%LMQ%a,%LMQ%b", INNER_MULTI_QUEUE_OFFSET: f"{number},{number}"}
        log.put("TopicTest", b"body", lists)
    log.write(tmp_path / "store" / "commitlog")
    (tmp_path / "out").mkdir()
    rules = replace(RULES, multi_dispatch=MultiDispatch.USER_TOPICS)
    queues = QueueBuilder(rules, DerivedFiles(tmp_path / "out"), kernels)
    with Store.open(tmp_path / "store").segments[0].open() as source:
        (run,) = (one for one in SegmentScan(source, 0, kernels=kernels) if isinstance(one, Records))
        window = np.frombuffer(run.window.tobytes().replace(b"%LMQ%a", b"%LMQ%\xff"), np.uint8)
        queues.take(Records(run.rows, window, run.origin), 0)
        queues.flush()
    assert {topic for topic, _ in queues.queues.built()} == {"TopicTest", "%LMQ%\ufffd", "%LMQ%b"}
