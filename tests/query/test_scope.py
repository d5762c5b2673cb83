"""Segments that a filter cannot concern are not scanned, by no command, and what is said of them is true."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from rmqtool.scan import log as scan_module
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3_600_000
SEGMENT = 4096
COUNT = 90


@pytest.fixture
def log(tmp_path: Path) -> HandmadeLog:
    """Records an hour apart, about 18 in a segment."""
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(COUNT):
        log.put("T", b"x" * 100, {"KEYS": f"k{number}"}, store_timestamp=FIRST_TIME + number * HOUR)
    log.write(tmp_path / "store/commitlog")
    return log


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bases of the segments that are scanned, in the order in which they are opened."""
    found: list[int] = []
    usual = scan_module.opened

    def watched(segment: Any, *more: Any, **how: Any) -> Any:
        found.append(segment.base)
        return usual(segment, *more, **how)

    monkeypatch.setattr(scan_module, "opened", watched)
    return found


def command(name: str, store: Path, *options: object) -> tuple[int, dict[str, Any], int]:
    """Exit code, summary and number of messages."""
    if name == "export":
        result = rmq(name, store, "--to", store.parent / "x.raw", "--json", "--force", *options)
        summary = json.loads(result.stdout)
    else:
        result = rmq(name, store, "--format", "ndjson", *options)
        summary = result.rows[-1]
    return result.exit_code, summary, summary["messages"]


@pytest.mark.share
@pytest.mark.parametrize("name", ["dump", "stats", "export"])
@pytest.mark.parametrize(
    ("low", "high"), [(80, COUNT), (0, 5), (40, 43), (COUNT + 5, COUNT + 9), (None, 24), (70, None)]
)
def test_segments_outside_of_the_times_are_not_opened(
    tmp_path: Path, log: HandmadeLog, opened: list[int], name: str, low: int | None, high: int | None
) -> None:
    options: list[object] = [] if low is None else ["--from", FIRST_TIME + low * HOUR]
    if high is not None:
        options += ["--until" if name == "export" else "--to", FIRST_TIME + high * HOUR]
    chosen = log.records[low or 0 : high]
    code, summary, messages = command(name, tmp_path / "store", *options)
    assert (code, messages) == (0, len(chosen))
    needed = {one.physical_offset // SEGMENT * SEGMENT for one in chosen}
    assert needed <= set(opened) <= needed | {max(log.segments)}
    assert summary["segments_skipped"] == len(log.segments) - len(opened) > 0


@pytest.mark.parametrize("name", ["dump", "stats", "export"])
def test_segments_outside_of_the_offsets_are_not_opened(
    tmp_path: Path, log: HandmadeLog, opened: list[int], name: str
) -> None:
    bounds = f"{SEGMENT}:{2 * SEGMENT}"
    _, summary, messages = command(name, tmp_path / "store", "--offset-range", bounds)
    assert messages == sum(SEGMENT <= one.physical_offset < 2 * SEGMENT for one in log.records)
    assert opened == [SEGMENT]
    assert not summary.get("segments_skipped")


@pytest.mark.parametrize("name", ["dump", "stats", "export"])
def test_damage_is_told_where_it_is_in_the_scope(tmp_path: Path, log: HandmadeLog, name: str) -> None:
    at = log.records[5].physical_offset
    with (tmp_path / f"store/commitlog/{0:020d}").open("r+b") as file:
        file.seek(at)
        file.write(b"\xee" * 8)
    found = 1 if name == "dump" else 3
    assert command(name, tmp_path / "store", "--from", FIRST_TIME + 1)[0] == found
    assert command(name, tmp_path / "store", "--from", FIRST_TIME + 80 * HOUR)[0] == 0


@pytest.mark.parametrize("name", ["dump", "stats", "export"])
def test_clocks_that_were_set_and_unreadable_ends_hide_nothing(
    tmp_path: Path, opened: list[int], name: str
) -> None:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(COUNT):
        back = 300_000 if number % 7 == 3 else 0
        log.put("T", b"x" * 100, store_timestamp=FIRST_TIME + number * HOUR - back)
    log.write(tmp_path / "store/commitlog")
    low = FIRST_TIME + 24 * HOUR - 300_000
    wanted = [one for n, one in enumerate(log.records) if n >= 24]
    assert command(name, tmp_path / "store", "--from", low)[2] == len(wanted)
    with (tmp_path / f"store/commitlog/{0:020d}").open("r+b") as file:
        file.write(b"\xee" * 8)
    opened.clear()
    command(name, tmp_path / "store", "--from", low)
    assert 0 in opened
