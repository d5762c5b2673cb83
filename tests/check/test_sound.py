"""Records with nothing to tell are verified by their sums: nothing is said otherwise than one by one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import logs
from rmqtool.check.account import Accounting
from rmqtool.check.levels import Level
from rmqtool.check.log_reading import CheckedLog
from rmqtool.check.verify import Verification
from rmqtool.scan import sound
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.scan.conftest import compiled_kernels, python_kernels
from tests.scan.test_reader import DAMAGE, SIZE, write_harmed

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from rmqtool.check.account import RunSummary
    from tests.scan.test_reader import Damage

KERNELS = [python_kernels, compiled_kernels]
DAY = 86_400_000
AT_STORE_TIME = 56


def jumping_times(data: bytearray, chance: np.random.Generator) -> None:
    """Some records were stored days before their neighbours, some at no time."""
    for number in chance.integers(0, SIZE // 300, 6).tolist():
        at = number * 300 + AT_STORE_TIME
        time = int.from_bytes(data[at : at + 8], "big") - 9 * DAY if number % 3 else 0
        data[at : at + 8] = time.to_bytes(8, "big")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound")
    logs.write_log(root / "commitlog", 2 * SIZE, body_size=logs.BODY_OF_300, segment_size=SIZE)
    return root


def verified(root: Path, jobs: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    store = Store.open(root)
    run = Verification(store, ReadOptions.of(store, jobs=jobs))
    found = [one.row() for one in run.findings()]
    return found, run.summary() | {"seconds": None}


@pytest.mark.share
@pytest.mark.parametrize("module", KERNELS)
@pytest.mark.parametrize("harm", [None, *DAMAGE, jumping_times])
def test_sums_say_what_the_records_say(
    whole: Path,
    tmp_path: Path,
    harm: Damage | None,
    module: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sound, "BLOCK", 7)
    (tmp_path / "commitlog").mkdir()
    kernels: ModuleType = module()
    monkeypatch.setattr("rmqtool.check.verify.choose_kernels", lambda *_: kernels)
    for seed in range(2):
        write_harmed(whole, tmp_path, harm, seed)
        by_sums = [verified(tmp_path, jobs) for jobs in (1, 2)]
        with monkeypatch.context() as patch:
            patch.setattr(Accounting, "summed", False)
            assert by_sums == [verified(tmp_path, 1)] * 2


@pytest.mark.parametrize("name", ["sound_stretches", "sound_columns", "walk"])
def test_a_mapped_segment_that_is_cut_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What was made of zeros in the place of bytes does not count."""
    kernels = compiled_kernels()
    size, left = 12 << 20, 5_000_001
    facts = logs.write_log(tmp_path / "commitlog", 2 * size, segment_size=size)
    path = tmp_path / "commitlog" / ("0" * 20)
    called: list[int] = []
    usual = getattr(kernels, name)

    def cut_first(*arguments: Any) -> None:
        if not called:
            assert len(arguments[0]) == size, "not mapped"
            os.truncate(path, left)
        called.append(1)
        usual(*arguments)

    monkeypatch.setattr(kernels, name, cut_first)
    store = Store.open(tmp_path)
    account = Accounting(kernels, Level.DEFAULT, stretched=name != "sound_columns", unindexed=True)
    monkeypatch.setattr(Accounting, "summed", name == "sound_stretches")
    accounts: list[RunSummary] = []
    others: list[str] = []
    for segment, event in CheckedLog(store.segments, ReadOptions(), kernels, account, mapped=True).events():
        if hasattr(event, "extent"):
            accounts.append(event)
        elif not segment.base:
            others.append(type(event).__name__)
    lost = (size - 8) // facts.record_size - left // facts.record_size
    assert sum(one.extent.records for one in accounts) == facts.messages - lost
    assert {topic for topic, _ in accounts[0].placed.keys} <= set(logs.TOPICS) | {""}
    assert others == ["Gap", "Unreadable", "End"]
