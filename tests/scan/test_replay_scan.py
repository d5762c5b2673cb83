"""Replayable files as tables: the same answers as the reader of single records, on both kernels."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import strategies as st

from fixtures.builder import HandmadeLog
from formats import replay
from formats.commitlog import encode_message
from rmqtool.api import open_store, scan, scan_replay
from rmqtool.errors import NewerFormatError, NotAStoreError, UnreadableError
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, EntryStop
from rmqtool.scan.replay import ReplayStop
from rmqtool.scan.replay_scan import ReplayScan
from rmqtool.store.bytes import MemorySource
from tests.helpers import rmq
from tests.scan.conftest import compiled_kernels
from tests.scan.guarded import before_guard
from tests.scan.replay_reader import ReplayReader
from tests.scan.tools import SmallWindows, array, check_property, logs, meaning

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from rmqtool.scan.replay import ReplayEnd
    from rmqtool.store.bytes import Window

    Both = tuple[ModuleType, ModuleType]


def records() -> list[bytes]:
    log = HandmadeLog()
    for number in range(4):
        log.put("TopicTest", b"body" * number, {"KEYS": f"k{number}"})
    return [placed.data for placed in log.records]


RECORDS = records()


def file_of(*contents: bytes) -> bytes:
    return replay.header() + b"".join(map(replay.entry, contents)) + replay.end(len(contents))


FILE = file_of(*RECORDS)


def scanned(
    raw: bytes, kernels: ModuleType, window: int = 300, rows: int = 3
) -> tuple[list[bytes], ReplayEnd]:
    entries = ReplayScan(SmallWindows(raw, window), kernels=kernels, batch_rows=rows)
    found: list[bytes] = []
    for run in entries:
        for batch in entries.batches(run, ["record", "position"], "x"):
            found += batch["record"].to_pylist()
            for at, record in zip(batch["position"].to_pylist(), batch["record"].to_pylist(), strict=True):
                assert raw[at : at + len(record)] == record
    assert entries.end is not None
    assert entries.strange == []
    return found, entries.end


def single(raw: bytes) -> tuple[list[bytes], ReplayEnd]:
    reader = ReplayReader(io.BytesIO(raw))
    found = list(reader)
    assert reader.end is not None
    return found, reader.end


@pytest.mark.parametrize("window", [1, 150, 1 << 20])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_what_was_written_is_read(kernels: ModuleType, window: int, rows: int) -> None:
    found, end = scanned(FILE, kernels, window, rows)
    assert found == RECORDS
    assert (end.stop, end.position, end.count) == (ReplayStop.END, len(FILE), 4)


def test_every_cut_is_noticed_and_what_is_in_front_is_read(kernels: ModuleType) -> None:
    for length in range(len(FILE)):
        assert scanned(FILE[:length], kernels) == single(FILE[:length]), length


def test_every_changed_byte_is_noticed(kernels: ModuleType) -> None:
    for place in range(len(replay.header()), len(FILE)):
        raw = bytearray(FILE)
        raw[place] ^= 0x41
        assert scanned(bytes(raw), kernels) == single(bytes(raw)), place
        assert not scanned(bytes(raw), kernels)[1].whole


@pytest.mark.parametrize("raw", [FILE + b"x", file_of(), FILE[:-24] + replay.end(5), FILE[:-24] + bytes(24)])
def test_ends(kernels: ModuleType, raw: bytes) -> None:
    assert scanned(raw, kernels) == single(raw)


def test_other_files_and_other_versions() -> None:
    with pytest.raises(NotAStoreError, match="not a replayable file"):
        ReplayScan(MemorySource(b"PAR1" + FILE))
    with pytest.raises(NewerFormatError, match="version 2"):
        ReplayScan(MemorySource(replay.MAGIC + b"\0\0\0\2"))


@pytest.mark.parametrize(
    "strange", [b"no record", RECORDS[0][:-1], RECORDS[0] + b"x", RECORDS[0] + RECORDS[1]]
)
def test_an_entry_without_a_record_is_told_and_passed_over(kernels: ModuleType, strange: bytes) -> None:
    raw = file_of(RECORDS[0], strange, RECORDS[1])
    entries = ReplayScan(SmallWindows(raw, 64), kernels=kernels)
    assert sum(len(run.rows) for run in entries) == 2
    assert entries.strange == [(12 + 8 + len(RECORDS[0]), 8 + len(strange))]
    assert entries.end is not None
    assert entries.end.whole


class Asked(SmallWindows):
    """Notes how many bytes are wanted at once."""

    most = 0

    def window(self, offset: int, length: int) -> Window:
        self.most = max(self.most, length)
        return super().window(offset, length)


@pytest.mark.parametrize(("cut", "whole"), [(0, True), (24 + 8 + len(RECORDS[1]) + 1, False)])
def test_an_entry_that_is_too_long_is_passed_over_unread(
    kernels: ModuleType, cut: int, *, whole: bool
) -> None:
    raw = file_of(RECORDS[0], bytes(100_000), RECORDS[1])
    source = Asked(raw[: len(raw) - cut], 1000)
    entries = ReplayScan(source, kernels=kernels, longest=2000)
    assert sum(len(run.rows) for run in entries) == 1 + whole
    assert entries.strange == [(12 + 8 + len(RECORDS[0]), 8 + 100_000)] * whole
    assert entries.end is not None
    assert entries.end.whole == whole
    assert source.most <= 1000


def test_kernels_agree_on_any_bytes(both: Both, effort: int) -> None:
    def prop(pieces: list[bytes], change: int, behind: int, cut: int, checks: Check) -> None:
        raw = bytearray(b"".join(pieces))
        if raw and change:
            raw[change % len(raw)] ^= change % 255 + 1
        data = bytes(raw[: max(len(raw) - cut, 0)])
        answers = []
        for kernels in both:
            rows, status = np.zeros((5, ROW_WIDTH), np.int64), np.full(STATUS_WIDTH, -9, np.int64)
            kernels.walk_entries(array(data), 0, 64, 64 + len(data) + behind, int(checks), rows, status)
            reported = [meaning(row, checks) for row in rows[: status[0]]]
            answers.append((status.tolist(), reported))
        assert answers[0] == answers[1]

    pieces = st.lists(
        logs(max_records=1).map(lambda data: replay.entry(data) if data else b"") | st.binary(max_size=30),
        max_size=4,
    )
    small = st.integers(0, 40)
    check_property(
        prop, pieces, st.integers(0, 5000), small, small, st.sampled_from(Check), examples=100 * effort
    )


def test_nothing_behind_the_buffer_is_read() -> None:
    kernels = compiled_kernels()
    rows, status = np.zeros((9, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    whole = b"".join(map(replay.entry, RECORDS[:2])) + replay.entry(encode_message("T" * 90, b"", b"a\x01b"))
    for length in range(len(whole) + 1):
        with before_guard(whole[:length]) as buffer:
            for behind in (0, 1000):
                kernels.walk_entries(buffer, 0, 0, length + behind, int(Check.ALL), rows, status)
                assert status[2] in {EntryStop.CUT, EntryStop.NEED_MORE}


def test_the_table_is_that_of_the_log(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=4096)
    for number in range(90):
        log.put(f"T{number % 3}", b"x" * number, {"KEYS": f"k{number} l", "TAGS": "A"})
    log.write(tmp_path / "store/commitlog")
    assert rmq("export", tmp_path / "store", "--to", tmp_path / "all.replay").exit_code == 0
    (table,) = (b for b in scan_replay(tmp_path / "all.replay"))
    expected = [row for batch in scan(open_store(tmp_path / "store")) for row in batch.to_pylist()]
    places = ("path", "segment", "position")
    found = table.to_pylist()
    assert [{k: v for k, v in row.items() if k not in places} for row in found] == [
        {k: v for k, v in row.items() if k not in places} for row in expected
    ]
    assert {row["segment"] for row in found} == {None}
    assert [row["position"] for row in found] == [
        12 + 8 * (n + 1) + sum(len(one.data) for one in log.records[:n]) for n in range(90)
    ]


def test_a_table_of_a_file_that_is_not_whole_ends_in_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.replay"
    for raw, why in (
        (FILE[:-1], "cut"),
        (file_of(*RECORDS, b"strange"), "no record"),
        (FILE + b"x", "trailing"),
    ):
        path.write_bytes(raw)
        read = scan_replay(path)
        assert next(read).num_rows == 4
        with pytest.raises(UnreadableError, match=why):
            next(read)
