"""Verification of whole stores: silence on what real brokers left, the right place in what was damaged."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from fixtures.stores import HandmadeStore, healthy_store
from rmqtool.check.verify import Verification
from rmqtool.errors import ExitCode
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.tiers import of_each_kind, sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHIFTED = "v533-lmq"
"""release 5.3.3 really misaligns a queue there"""

LIKE_HEALTHY = {
    "pre-blank",
    "only-pre-blank",
    "new-queue-zero-file",
    "empty-last-file",
    "empty-last-file-all",
    "empty-last-file-full-prev",
    "empty-queue-dir",
    "idle-queue-full-plus-zero-file",
    "all-zero-bytes",
    "empty-last-file-missing-first",
    "idle-queue-full-plus-zero-file-lost-first",
    "all-deleted-no-checkpoint",
    "one-topic-deleted",
}
"""an expired head, a deleted topic, files made in advance: a healthy store may look like that"""

BEHIND = ("lag-", "all-files-deleted", "newest-deleted", "all-deleted")
"""queues and index that are merely behind, as after a crash"""


def findings(path: Path, config: Any = None, jobs: int = 1) -> list[dict[str, Any]]:
    opened = Store.open(path, config=config)
    run = Verification(opened, ReadOptions.of(opened, jobs=jobs))
    rows = [one.row() for one in run.findings()]
    assert run.summary()["findings"] == len(rows)
    unread = {"X-ROCKSDB"} & {row["code"] for row in rows} or len(run.store.dledger_segments)
    assert run.summary()["complete"] == (not unread)
    return rows


def loud(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["severity"] != "note"]


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(fixtures.golden_names()))
def test_golden_stores_are_right(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    opened = golden(name)
    for store in opened.stores.values():
        rows = loud(findings(store))
        strange = [row for row in rows if not (name == SHIFTED and row["topic"] == "%LMQ%beta")]
        assert strange == []
        assert bool(rows) == (name == SHIFTED)


def test_the_shifted_queue_of_5_3_3(golden: Callable[[str], fixtures.Golden]) -> None:
    rows = loud(findings(golden(SHIFTED).path))
    assert {row["code"] for row in rows} == {"CQ-SHIFT"}
    assert sum(row["length"] // 20 for row in rows) == 29
    assert rows[0]["queue_offset"] == 1
    assert rows[0]["expected"] == 2


def one_of_each() -> list[fixtures.DamageCase]:
    seen: dict[tuple[str, str, bool], fixtures.DamageCase] = {}
    for case in fixtures.damage_cases():
        seen.setdefault((case.cls, case.variant, case.mode == "c"), case)
    return [case for case in seen.values() if demanded(case)]


def stem(case: fixtures.DamageCase) -> tuple[str, str]:
    """The class of damage and what was done, without where and how much."""
    return case.cls, case.variant.split("-")[0]


def demanded(case: fixtures.DamageCase) -> bool:
    """Does the damage have to be found as warning or above?"""
    if case.cls not in {"record", "block", "torn", "cq", "index"} or case.variant in LIKE_HEALTHY:
        return False
    if (case.cls, case.variant) == ("cq", "all-deleted"):
        return False
    return case.mode == "c" or not any(part in f"{case.cls} {case.variant}" for part in BEHIND)


def check_case(case: fixtures.DamageCase, target: Path) -> None:
    fixtures.apply_case(case, target)
    rows = findings(target, config_of(case.settings))
    if not case.variant.startswith("stray-"):
        rows = loud(rows)
    assert rows, "nothing found"
    if case.cls not in {"record", "block"} or case.variant == "storetime-future":
        return
    healthy = records_of(case.base, target.parent / "base")
    for path, spots in case.damaged.items():
        if not path.startswith("commitlog/"):
            continue
        here = [(row["position"] or 0, row["length"] or 1) for row in rows if row["path"] == path]
        for offset, length in spots:
            whole = healthy[bisect_right(healthy, int(path[10:]) + offset) - 1]
            near = any(start < offset + length and offset < start + size for start, size in here)
            assert near or any(row["physical_offset"] == whole for row in rows), (path, offset, here[:3])
    elsewhere = [
        row for row in rows if str(row["path"]).startswith("commitlog/") and row["path"] not in case.damaged
    ]
    assert not elsewhere or case.variant == "storetime-zero"


_healthy: dict[str, list[int]] = {}


def records_of(base: str, target: Path) -> list[int]:
    """Where the records of an undamaged base begin."""
    if base not in _healthy:
        from rmqtool.api import open_store, scan

        fixtures.copy_base(base, target)
        batches = scan(open_store(target), columns=["physical_offset"])
        _healthy[base] = [offset for batch in batches for offset in batch["physical_offset"].to_pylist()]
    return _healthy[base]


@pytest.mark.parametrize("case", sampled(one_of_each(), kind=stem), ids=lambda case: case.id)
def test_damage_is_found_at_its_place(case: fixtures.DamageCase, tmp_path: Path) -> None:
    check_case(case, tmp_path / "store")


@pytest.mark.full
@pytest.mark.parametrize(
    "case", [case for case in fixtures.damage_cases() if demanded(case)], ids=lambda c: c.id
)
def test_all_damage_is_found_at_its_place(case: fixtures.DamageCase, tmp_path: Path) -> None:
    check_case(case, tmp_path / "store")


@pytest.mark.parametrize("name", ["v533-basic", "b533-full", "v533-lmq"])
def test_jobs_change_nothing(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    path = golden(name).path
    assert findings(path, jobs=1) == findings(path, jobs=4)


def test_nothing_that_holds_data_is_left_unchecked(tmp_path: Path) -> None:
    """An index whose chains nobody can follow, whatever its header counts, is not a complete run."""
    store = healthy_store().write(tmp_path / "store")
    for file in store.index.files:
        for number in range(1, 60):
            store.patch(file.name, store.index.position(number) + 16, b"\x7f\xff\xff\xff")
        store.patch(file.name, 36, bytes(4))
        store.patch(file.name, 40, bytes(400))
    opened = Store.open(tmp_path / "store")
    run = Verification(opened, ReadOptions.of(opened))
    found = {one.code for one in run.findings()}
    assert "IDX-GEOMETRY" in found
    assert run.summary()["incomplete_reason"] == "damage"
    assert [row["path"] for row in run.covered.not_covered] == [one.name for one in store.index.files]


@pytest.mark.parametrize("name", ["b533-dledger", "b533-rocksdb"])
def test_messages_and_queues_in_forms_that_are_not_read(
    golden: Callable[[str], fixtures.Golden], name: str
) -> None:
    for store in golden(name).stores.values():
        opened = Store.open(store)
        run = Verification(opened, ReadOptions.of(opened))
        list(run.findings())
        assert not run.summary()["complete"]


def test_a_topic_that_a_store_took_is_not_damage(tmp_path: Path) -> None:
    """Only a broker above the store knows which names are allowed; a record alone makes no topic."""
    store = healthy_store()
    for number in range(3):
        store.put("支付-paid", b"%d" % number)
    place = store.put("支付-new", b"behind all")
    store.write(tmp_path)
    assert not loud(findings(tmp_path))
    shutil.rmtree(tmp_path / "consumequeue" / "支付-new")
    (odd,) = (row for row in findings(tmp_path) if row["code"] == "CL-TOPIC")
    assert odd["physical_offset"] == place.offset


def test_a_queue_directory_that_was_copied_away(tmp_path: Path) -> None:
    def verified(path: Path) -> tuple[int, list[str]]:
        run = rmq("verify", path, "--as", "consumequeue", "--format", "ndjson")
        return run.exit_code, [row["code"] for row in run.rows[:-1]]

    name = "00000000000000000000"
    store = healthy_store().write(tmp_path / "store")
    units = (store.root / "consumequeue/Orders/0" / name).read_bytes()
    mailed = tmp_path / "mailed"
    mailed.mkdir()
    (mailed / name).write_bytes(units)
    assert verified(mailed) == (ExitCode.OK, [])
    (mailed / name).write_bytes(units[:20] + b"\xff" * 40 + units[60:])
    assert verified(mailed) == verified(mailed / name) == (ExitCode.DAMAGE, ["CQ-INVALID"])
    (mailed / name).rename(tmp_path / "units")
    assert verified(tmp_path / "units") == (ExitCode.INCOMPLETE, [])
    for queue in "ab":
        (mailed / queue).mkdir()
        (mailed / queue / name).write_bytes(units)
    assert verified(mailed) == (ExitCode.INCOMPLETE, [])


def test_a_wrong_size_among_shifted_entries(tmp_path: Path) -> None:
    """Both are wrong: where it lies, and what it says."""
    store = HandmadeStore()
    for number in range(20):
        if number == 10:
            store.log.queue_offsets["Orders", 0] += 3
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    path, position = store.stored[15].unit or ("", 0)
    store.patch(path, position + 8, (store.stored[15].size + 64).to_bytes(4, "big"))
    rows = rmq("verify", store.root, "--format", "ndjson").of_type("finding")
    found = {(row["code"], row["queue_offset"], row["length"]) for row in rows if row["severity"] == "error"}
    assert found == {("CQ-SHIFT", 10, 200), ("CQ-SIZE", 15, 20)}


def test_a_commitlog_directory_of_a_whole_store_has_no_lost_queues(tmp_path: Path) -> None:
    """Its topics are known from the settings beside it; its queues were not given, so none is missed."""
    root = fixtures.open_golden("v498-basic", tmp_path).path
    reported = rmq("verify", root / "commitlog", "--format", "ndjson")
    assert reported.exit_code == 0, reported.stdout
    about = {row["code"] for row in reported.of_type("finding") if row["code"].startswith("X-")}
    assert about == {"X-NO-QUEUES"}


def test_a_queue_file_whose_name_lies_inside_of_an_entry(tmp_path: Path) -> None:
    """Law seed 52122: a broker does not find the first message, and nothing was said."""
    store = HandmadeStore()
    for number in range(15):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    path = store.root / "consumequeue/Orders/0"
    (path / f"{0:020d}").rename(path / f"{1:020d}")
    reported = rmq("verify", store.root, "--format", "ndjson")
    assert reported.exit_code == 1
    errors = [row for row in reported.of_type("finding") if row["severity"] == "error"]
    assert [(row["code"], row["expected"], row["found"]) for row in errors] == [("CQ-MISSING-FILE", 0, 1)]


def test_a_queue_of_the_brokers_own_topics_is_not_deleted(
    fresh_golden: Callable[[str], fixtures.Golden],
) -> None:
    """Without a topic table nothing else tells whether a topic was deleted; of these nobody can."""
    root = fresh_golden("v533-tx").path
    shutil.rmtree(root / "consumequeue/RMQ_SYS_TRANS_OP_HALF_TOPIC")
    result = rmq("verify", root, "--format", "ndjson")
    assert result.exit_code == ExitCode.DAMAGE
    assert {row["code"] for row in result.of_type("finding")} >= {"X-GHOST"}
