"""Compaction logs that are damaged: a real broker starts, or does not, as `doctor` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fixtures
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.check.test_compaction import CASES
from tests.interop.broker import Broker, Refused
from tests.interop.conftest import require

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

RELEASE = "5.3.3"
SETTINGS = {
    "mappedFileSizeCommitLog": 32768,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 30,
    "maxIndexNum": 120,
    "compactionMappedFileSize": 8192,
    "compactionCqMappedFileSize": 460,
}


@pytest.mark.full  # a broker takes seconds to start
@pytest.mark.parametrize("case", CASES)
def test_a_broker_does_what_doctor_says(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    require(request.config, RELEASE, "broker")
    root = fixtures.open_golden("b533-compaction", tmp_path).path
    CASES[case][0](root)
    said = simulate(Store.open(root), RELEASE)
    left_out = any(one.code == "DR-COMPACTION-LEFT-OUT" for one in said.consequences)
    if said.refusal is not None:
        with pytest.raises(RuntimeError):
            Broker(RELEASE, root, tmp_path, **SETTINGS)
        name, _, value = (said.refusal.setting or "").partition("=")
        with Broker(RELEASE, root, tmp_path, **{**SETTINGS, name: value}) as broker:
            assert broker.pull("TopicCompact", 0)[1]
        return
    with Broker(RELEASE, root, tmp_path, **SETTINGS) as broker:
        if left_out:
            with pytest.raises(Refused):
                broker.pull("TopicCompact", 0)
        else:
            assert broker.pull("TopicCompact", 0)[1]
    assert not [path for path in said.deletes if "compaction" in path and (root / path).exists()]
