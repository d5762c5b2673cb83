"""Entries are followed into the log together, with the answers that each would have alone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.many import Many
from fixtures.stores import healthy_store
from rmqtool.check.queue_files import OpenFiles, queues_of
from rmqtool.check.records_at import RecordsAt
from rmqtool.check.verify import Verification
from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.pieces import pieces
from rmqtool.store.access import Access
from rmqtool.store.bytes import PreadSource
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits

MANY = Many(1, 2, 2_000)


def queue_of(store: Store, files: OpenFiles, number: int = 0) -> QueueUnits:
    queues = queues_of(store, FileKind.CONSUMEQUEUE, files)
    return list(queues.values())[number]


def verified(root: Path) -> list[Finding]:
    return list(Verification(Store.open(root), ReadOptions()).findings())


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A handmade store of small segments: a lost one, zeros, and a record in another one's place."""
    root = tmp_path_factory.mktemp("damaged") / "store"
    healthy_store().write(root)
    segments = sorted((root / "commitlog").iterdir())
    segments[2].unlink()
    with segments[1].open("r+b") as file:
        file.seek(700)
        file.write(bytes(900))
    moved = segments[4].read_bytes()
    segments[3].write_bytes(moved)
    return root


@given(data=st.data())
def test_each_is_what_get_answers(damaged: Path, data: st.DataObject) -> None:
    store = Store.open(damaged)
    with closing(OpenFiles(Access())) as files:
        queue = queue_of(store, files, data.draw(st.integers(0, 3)))
        units = np.concatenate(
            [part for number in range(len(queue.files)) for _, part in queue.parts(number)]
        )
        chosen = units[data.draw(st.lists(st.integers(0, len(units) - 1), max_size=80))]
        wrong = np.array(data.draw(st.lists(st.integers(-5, 1 << 40), max_size=5)), np.int64)
        offsets = np.append(chosen["physical_offset"].astype(np.int64), wrong)
        sizes = np.append(
            chosen["size"].astype(np.int64), np.full(len(wrong), data.draw(st.integers(-9, 9999)))
        )
        records = RecordsAt(store.segments, files)
        found = list(records.each(offsets, sizes, choose_kernels(1 << 40)))
        assert found == [records.get(offset) for offset in offsets.tolist()]


def test_what_cannot_be_read_is_an_error_in_its_place(tmp_path: Path) -> None:
    MANY.write(tmp_path)
    store = Store.open(tmp_path)
    (log,) = (tmp_path / "commitlog").iterdir()
    log.unlink()
    with closing(OpenFiles(Access())) as files:
        offsets = np.arange(3) * MANY.record_size
        found = list(RecordsAt(store.segments, files).each(offsets, offsets, choose_kernels()))
    assert [isinstance(one, RmqtoolError) for one in found] == [True] * 3


@pytest.fixture
def log_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each read of the log by itself, while the queues are looked at."""
    found: list[int] = []
    window = PreadSource.window

    def counted(self: PreadSource, offset: int, length: int) -> Any:
        if "commitlog" in self.name:
            found.append(length)
        return window(self, offset, length)

    monkeypatch.setattr(PreadSource, "window", counted)
    return found


def test_only_the_entries_of_lost_records_are_followed(tmp_path: Path, log_reads: list[int]) -> None:
    MANY.write(tmp_path)
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        for number in (5, 700, 701, 2_000):
            file.seek(number * MANY.record_size)
            file.write(bytes(MANY.record_size))
    findings = verified(tmp_path)
    assert sum(one.code == "CQ-DANGLING" for one in findings) == 4
    assert len(log_reads) < 20


def test_a_shifted_queue_is_followed_in_pieces(tmp_path: Path, log_reads: list[int]) -> None:
    MANY.write(tmp_path)
    (path, *_) = sorted((tmp_path / "consumequeue").rglob("0*0"))
    with path.open("r+b") as file:
        raw = file.read(MANY.rounds * 20)
        file.seek(0)
        file.write(raw[20:] + bytes(20))
    findings = verified(tmp_path)
    shifted = [one for one in findings if one.code == "CQ-SHIFT"]
    assert [(one.queue_offset, one.length) for one in shifted] == [(0, (MANY.rounds - 1) * 20)]
    assert len(log_reads) < 20


@given(claims=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.booleans()), max_size=30))
def test_claims_are_a_set_of_slots(damaged: Path, claims: list[tuple[int, int, bool]]) -> None:
    store = Store.open(damaged)
    with closing(OpenFiles(Access())) as files:
        queue = queue_of(store, files)
        real = np.flatnonzero(queue.unclaimed(0, queue.part(0, 0, 1 << 20)))
        expected = set(real.tolist())
        for low, count, run in claims:
            if run and count:
                queue.claim(low, low + count)
            else:
                queue.claim_each(np.arange(low, low + count)[::-1])
            expected -= set(range(low, low + count))
        for first in (0, 3, 17):
            units = queue.part(0, first, 1 << 20)
            assert set((first + np.flatnonzero(queue.unclaimed(first, units))).tolist()) == {
                slot for slot in expected if slot >= first
            }


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 50)), max_size=40),
    st.integers(0, 40),
    st.integers(1, 200),
)
def test_pieces_hold_all_in_order(places: list[tuple[int, int]], apart: int, most: int) -> None:
    begins = np.array([begin for begin, _ in places], np.int64)
    ends = begins + np.array([length for _, length in places], np.int64)
    parts = list(pieces(begins, ends, apart, most)) if places else []
    assert [number for part in parts for number in range(part.start, part.stop)] == list(range(len(places)))
    for part in parts:
        mine = slice(part.start, part.stop)
        assert (np.diff(ends[mine]) >= 0).all()
        assert (begins[mine][1:] - ends[mine][:-1] <= apart).all()
        assert part.stop - part.start == 1 or ends[part.stop - 1] - begins[part.start] <= most
