"""Every reading of the log obeys the rate and tells how far it is, the simulated start of `saved` too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fixtures import apply_case, damage_case
from rmqtool.repair.keep.planner import KeepOptions, keep
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Counted:
    """A rate without a bound that counts."""

    taken: int = 0
    bytes_per_second: int = 1 << 40

    def take(self, count: int, stop: Any = None) -> None:
        self.taken += count


def test_three_readings_are_counted(tmp_path: Path) -> None:
    """By survey, derived files and simulated start."""
    case = damage_case("v533-record-body-first-last-abort0")
    store = Store.open(apply_case(case, tmp_path / "store"), config=config_of(dict(case.settings)))
    (tmp_path / "work").mkdir()
    limit, reported = Counted(), []
    access = Access("pread", limit=cast("Any", limit))
    reading = ReadOptions(access, 2, advance=reported.append)
    keep(store, KeepOptions("5.3.3", reading=reading), str(tmp_path / "work"))
    size = sum(one.size for one in store.segments)
    assert sum(reported) > 2 * size
    assert limit.taken > sum(reported)
