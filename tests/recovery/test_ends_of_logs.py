"""Where recovery ends a log or its queues, and what else says that there was more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import copy_base
from fixtures.stores import HandmadeStore
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import filled, start, with_huge_record, write

if TYPE_CHECKING:
    from pathlib import Path


@shows("DR-QUEUES-STOP")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_topic_with_a_zero_byte_ends_the_writing_of_queues(tmp_path: Path, release: str) -> None:
    """Both stores wrote three entries of `Orders`, and took no message (`ConsumeQueue`, `RunningFlags`)."""
    store = HandmadeStore()
    for number in range(6):
        store.put("Late" if number == 3 else "Orders", b"body")
    store.write(tmp_path / "store")
    late = store.stored[3]
    path, position = store.segment(late.offset)
    store.patch(path, store.read(path).index(b"Late", position), bytes(4))
    shutil.rmtree(store.root / "consumequeue")
    (store.root / "abort").touch()
    outcome = start(store.root, release)
    (found,) = of(outcome, "DR-QUEUES-STOP")
    assert found.facts["offset"] == late.offset
    assert {one.topic: one.max_offset for one in outcome.queues if one.max_offset} == {"Orders": 3}
    assert outcome.safe_to_start is False


@shows("DR-LOCALE-NAMES")
def test_names_in_other_digits_and_calendars(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    (root / "commitlog" / f"{0:020d}").rename(root / "commitlog" / f"{0:020d}".translate(digits))
    (root / "index").mkdir()
    (root / "index" / "25690101000000000").write_bytes(bytes(400))
    (found,) = of(start(root), "DR-LOCALE-NAMES")
    assert found.facts == {"count": 2}


@shows("DR-LOG-GONE")
def test_a_log_that_is_gone_with_its_queues(tmp_path: Path) -> None:
    root = copy_base("v533-a-clean", tmp_path / "store")
    for name in ("commitlog", "consumequeue"):
        shutil.rmtree(root / name)
    outcome = simulate(Store.open(root), "5.3.3")
    (found,) = of(outcome, "DR-LOG-GONE")
    assert outcome.verdict is Verdict.UNSAFE
    assert found.facts["evidence"].startswith("checkpoint, index/")


@shows("DR-END-DOUBTED")
def test_an_end_that_only_the_checkpoint_knows(tmp_path: Path) -> None:
    """A backup of the log that is older than the rest: brokers start and go on from there."""
    store = HandmadeStore()
    for _ in range(60):
        store.put("Orders", b"body")
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "index")
    assert simulate(Store.open(store.root), "5.3.3").verdict is Verdict.SAFE
    last, before = store.stored[-1], store.stored[-2]
    store.patch(*store.segment(last.offset), bytes(last.size))
    store.patch(*(last.unit or ("", 0)), bytes(20))
    for release in ("4.9.8", "5.3.3"):
        outcome = simulate(Store.open(store.root), release)
        (found,) = of(outcome, "DR-END-DOUBTED")
        assert found.facts == {"until": last.time, "latest": before.time, "end": last.offset}
        assert outcome.verdict is Verdict.DAMAGED
        assert outcome.already_damaged.paths == ("checkpoint",)


@shows("DR-HEAP")
def test_a_large_record_where_recovery_stops(tmp_path: Path) -> None:
    with_huge_record(tmp_path)
    assert "DR-HEAP" in codes(start(tmp_path, "4.9.8"))
    assert "DR-HEAP" not in codes(start(tmp_path))


@pytest.mark.parametrize("longer", [False, True])
@shows("DR-END-LOST")
def test_an_end_that_only_the_index_knows(longer: bool, tmp_path: Path) -> None:
    """400487: an index file that had become longer was not asked, and the start was called safe."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body", keys=f"k{number}")
    store.write(tmp_path / "store")
    last = store.stored[-1]
    store.patch(*store.segment(last.offset), bytes(last.size))
    store.patch(*(last.unit or ("", 0)), bytes(20))
    if longer:
        with max((store.root / "index").iterdir()).open("ab") as file:
            file.write(b"\0")
    outcome = simulate(Store.open(store.root), "5.3.3")
    (found,) = of(outcome, "DR-END-LOST")
    assert found.facts == {"offset": last.offset, "end": last.offset}
    assert outcome.verdict is Verdict.DAMAGED
    assert outcome.already_damaged.bytes == 1
