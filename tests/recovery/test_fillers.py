"""A filler of just the right length over a record in the last data segment, as the real stores meet it.

Held against runs of 4.9.8 and 5.3.3: the log ends at the filler, the ten records behind it are gone, and
their queue offsets are given out again, whether the queues had got that far or not.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from fixtures import base_facts, copy_base
from formats.commitlog import BLANK_MAGIC_CODE
from rmqtool.broker.settings import settings_of
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import reading_for, simulate
from rmqtool.scan import kernels_python
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.recovery.outcome import Outcome

SIZE = 65536
LAST, BEFORE = 393216, 327680
BEHIND = 10


def places(root: Path, base: int) -> list[int]:
    """Positions of the records in a segment."""
    file = Store.open(root).file(f"commitlog/{base:020d}")
    assert file is not None
    found: list[int] = []
    with file.open("pread") as source:
        scan = SegmentScan(source, base, checks=Check.FRAME, active=True, kernels=kernels_python)
        for event in scan:
            if isinstance(event, Records):
                found += event.rows[:, Field.POSITION].tolist()
    return found


def put_filler(root: Path, base: int, position: int) -> None:
    with (root / f"commitlog/{base:020d}").open("r+b") as file:
        file.seek(position)
        file.write(struct.pack(">ii", SIZE - position, BLANK_MAGIC_CODE))


def shorten_queues(root: Path, end: int) -> None:
    """Takes the entries for records at or behind `end` away."""
    for path in (root / "consumequeue").rglob("0*"):
        if path.is_file():
            raw = bytearray(path.read_bytes())
            for at in range(0, len(raw) // 20 * 20, 20):
                if struct.unpack_from(">q", raw, at)[0] >= end:
                    raw[at : at + 20] = bytes(20)
            path.write_bytes(raw)


def start(root: Path, release: str) -> Outcome:
    store = Store.open(root, config=config_of(base_facts("v533-a-clean")["config"]))
    return simulate(store, release, settings_of(store), reading=reading_for(store, kernels_python))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_base("v533-a-clean", tmp_path / "store")


@pytest.mark.share
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
@pytest.mark.parametrize("behind", [False, True], ids=["queues-whole", "queues-behind"])
def test_in_the_last_segment_it_costs_what_lies_behind(root: Path, release: str, behind: bool) -> None:
    records = places(root, LAST)
    filler = records[-BEHIND - 1]
    put_filler(root, LAST, filler)
    if behind:
        shorten_queues(root, LAST + filler)
    outcome = start(root, release)
    assert outcome.verdict is Verdict.UNSAFE
    assert outcome.max_physical_offset == LAST + filler
    assert outcome.loss is not None
    assert (outcome.loss.messages, outcome.loss.ranges[0].start) == (BEHIND, LAST + records[-BEHIND])
    assert sum(one.repeated + one.lost for one in outcome.queues) >= BEHIND


@pytest.mark.parametrize(("release", "base"), [("4.9.8", BEFORE), ("5.3.3", BEFORE), ("5.3.3", 0)])
def test_in_front_of_others_one_message_is_lost_already(root: Path, release: str, base: int) -> None:
    """Recovery may begin behind it: 5.3.3 still serves what lies behind the filler, the queues lead there."""
    put_filler(root, base, places(root, base)[-BEHIND - 2])
    outcome = start(root, release)
    assert (outcome.verdict, outcome.already_damaged.messages) == (Verdict.DAMAGED, 1)
    assert f"commitlog/{base:020d}" in outcome.already_damaged.paths


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_older_records_behind_a_true_filler_are_no_loss(root: Path, release: str) -> None:
    """What an earlier life of the file left there, at its place and whole."""
    records = places(root, LAST)
    path = root / f"commitlog/{LAST:020d}"
    raw = bytearray(path.read_bytes())
    filler = records[-BEHIND]
    for position in records[-BEHIND:]:
        struct.pack_into(">q", raw, position + 56, 1)  # storeTimestamp
    path.write_bytes(raw)
    put_filler(root, LAST, filler)
    shorten_queues(root, LAST + filler)
    outcome = start(root, release)
    assert outcome.loss is not None
    assert outcome.loss.messages == 0
    assert "DR-FILLER-HIDES" not in {one.code for one in outcome.consequences}
