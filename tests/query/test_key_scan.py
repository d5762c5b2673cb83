"""A scan for keys that passes over records without them finds what one finds that looks at each record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fixtures import logs
from rmqtool.query.key_scan import KeyScan
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan import sound
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.check.test_sound import jumping_times
from tests.scan.conftest import compiled_kernels, python_kernels
from tests.scan.test_reader import DAMAGE, SIZE, write_harmed

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.scan.events import Records
    from tests.scan.test_reader import Damage

KEYS = [f"order-{number:010d}" for number in (0, 1, 150, 151, 160, 299, 400, 10**9)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("keys")
    logs.write_log(root / "commitlog", 2 * SIZE, body_size=logs.BODY_OF_300, segment_size=SIZE)
    return root


def found(root: Path, topic: str | None, start: int, end: int) -> tuple[list[int], list[dict[str, Any]], int]:
    done: list[int] = []
    scan = KeyScan(WantedKeys(KEYS, topic), (None, None), ReadOptions(advance=done.append))
    batches = list(scan.read(Store.open(root).segments, start, end))
    places = [place for batch in batches for place in batch["physical_offset"].to_pylist()]
    return places, scan.not_covered, sum(done)


@pytest.mark.share
@pytest.mark.parametrize("module", [python_kernels, compiled_kernels])
@pytest.mark.parametrize("harm", [None, *DAMAGE, jumping_times])
def test_nothing_is_passed_over_that_is_wanted(
    whole: Path, tmp_path: Path, harm: Damage | None, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "BLOCK", 7)
    monkeypatch.setattr(sound, "LEAST", 1)
    for user in ("query.key_scan", "scan.log"):
        monkeypatch.setattr(f"rmqtool.{user}.choose_kernels", lambda *_: module())
    (tmp_path / "commitlog").mkdir()
    for seed in range(2):
        write_harmed(whole, tmp_path, harm, seed)
        for topic in (None, logs.TOPICS[0]):
            for start, end in ((0, 2 * SIZE), (0, 200 * 300)):
                passing = found(tmp_path, topic, start, end)
                with monkeypatch.context() as patch:
                    patch.setattr(sound.RunsWithoutKeys, "__call__", lambda *_: None)
                    assert passing == found(tmp_path, topic, start, end)
        if harm is None:
            assert len(found(tmp_path, None, 0, 2 * SIZE)[0]) == len(KEYS) - 1


def test_most_records_are_not_looked_at(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def hashed(hashing: Any, run: Records) -> Any:
        looked.append(len(run.rows))
        return key_hashes(hashing, run)

    monkeypatch.setattr("rmqtool.query.key_scan.key_hashes", hashed)
    scan = KeyScan(WantedKeys(["nobody has it"]), (None, None), ReadOptions())
    assert list(scan.read(Store.open(whole).segments, 0, 2 * SIZE)) == []
    assert sum(looked) <= 2 * sound.BLOCK
