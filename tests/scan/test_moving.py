"""The end of a log that is being written: what is half written is read again, what is damaged is reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from rmqtool.scan import kernels_python
from rmqtool.scan.events import Gap, Records, Tail, TailContent
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.moving import PATIENCE
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = 8192
COUNT = 6


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, bytes, list[int]]:
    """A segment with six records: its file, its bytes, and where records begin."""
    log = HandmadeLog(segment_size=SIZE)
    for number in range(COUNT):
        log.put("TopicTest", bytes([65 + number]) * 300, {"TAGS": "TagA"})
    log.write(tmp_path)
    path = tmp_path / ("0" * 20)
    return path, path.read_bytes(), [record.physical_offset for record in log.records]


def scanned(path: Path, *, moving: bool) -> tuple[int, int, list[object]]:
    """Whole records, those with a wrong CRC, and all other events but the end."""
    good = bad = 0
    others: list[object] = []
    with open_source(path, "pread") as source:
        for event in SegmentScan(source, 0, kernels=kernels_python, moving=moving):
            if isinstance(event, Records):
                wrong = int((event.rows[:, Field.CRC_STATE] == CrcState.BAD).sum())
                good, bad = good + len(event.rows) - wrong, bad + wrong
            else:
                others.append(event)
    return good, bad, others[:-1]


def at_each_wait(monkeypatch: pytest.MonkeyPatch, does: Callable[[], object]) -> list[float]:
    """Something is done where time would pass; the seconds that would have."""
    waits: list[float] = []
    instead = SimpleNamespace(sleep=lambda seconds: [waits.append(seconds), does()])
    monkeypatch.setattr("rmqtool.scan.moving.time", instead)
    return waits


@pytest.mark.parametrize("written", [0, 3, 40, 150, 388])
def test_a_half_written_record_is_read_again(
    made: tuple[Path, bytes, list[int]], monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    path, whole, places = made
    torn = whole[: places[-1] + written] + bytes(SIZE - places[-1] - written)
    path.write_bytes(torn)
    waits = at_each_wait(monkeypatch, lambda: path.write_bytes(whole))
    good, bad, others = scanned(path, moving=True)
    assert waits == [PATIENCE] * bool(written)
    assert (good, bad) == (COUNT if written else COUNT - 1, 0)
    assert [type(one) for one in others] == [Tail]
    assert isinstance(others[0], Tail)
    assert others[0].content is TailContent.ZERO


def test_damage_at_a_moving_end_is_reported(
    made: tuple[Path, bytes, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole, places = made
    damaged = bytearray(whole)
    damaged[places[2] + 100] ^= 1  # in a body
    damaged[places[4] + 4] ^= 1  # a magic
    path.write_bytes(damaged)
    waits = at_each_wait(monkeypatch, lambda: None)
    good, bad, others = scanned(path, moving=True)
    assert (good, bad) == (COUNT - 2, 1)
    assert [(type(one), one.position) for one in others[:1] if isinstance(one, Gap)] == [(Gap, places[4])]
    assert len(waits) == 1, "what looks bad is waited for once"
    assert scanned(path, moving=False) == (good, bad, others)


def test_records_that_come_while_the_next_one_is_searched(
    made: tuple[Path, bytes, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros were seen where a record is now, and records behind them."""
    path, whole, places = made
    path.write_bytes(whole[: places[2]] + bytes(SIZE - places[2]))
    usual = SegmentScan.first_nonzero

    def written_meanwhile(self: SegmentScan, position: int) -> int:
        path.write_bytes(whole)
        self._windows.forget()
        return usual(self, position)

    monkeypatch.setattr(SegmentScan, "first_nonzero", written_meanwhile)
    good, bad, others = scanned(path, moving=True)
    assert (good, bad, [type(one) for one in others]) == (COUNT, 0, [Tail])
