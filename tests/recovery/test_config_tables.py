"""600 damaged configuration files: what a broker's own managers made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fixtures import config_cases
from rmqtool.broker.traits import traits_of
from rmqtool.recovery.config_tables import Loads, config_outcomes, config_view, loads_as
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = ("4.9.7", "5.3.3")
_BAK_ONLY = {"topics.json": "BakTopic", "subscriptionGroup.json": "gbak"}


def loaded(case: dict[str, Any], release: str) -> Loads:
    main, bak = (None if case[part] is None else bytes.fromhex(case[part]) for part in ("main", "bak"))
    traits = traits_of(release)
    return loads_as(config_view(case["file"], main, traits), config_view(case["file"], bak, traits))


def from_backup(case: dict[str, Any]) -> bool:
    """Whether the table that was seen is the one of the `.bak`, whose content differs from the file's."""
    table = case["result"]["table"]
    if case["file"] == "consumerOffset.json":
        return bool(table) and table.get("OrderTopic@g1", {}).get("0") == 600
    return any("bak" in name.lower() for name in table)


@pytest.mark.parametrize("release", RELEASES)
def test_every_table_loads_as_it_did(release: str) -> None:
    wrong = []
    for case in config_cases(release):
        result, found = case["result"], loaded(case, release)
        wanted = Loads.REFUSES
        if result["load"]:
            wanted = Loads.EMPTY
            if result["table"]:
                wanted = Loads.BAK if from_backup(case) else Loads.PRIMARY
        if found is not wanted:
            wrong.append((case["id"], found, wanted))
    assert wrong == []


def test_there_are_six_hundred() -> None:
    assert sum(len(config_cases(release)) for release in RELEASES) == 600


def test_tables_of_a_store(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (tmp_path / "commitlog").mkdir()
    (config / "topics.json").write_text('{"topicConfigTable":{}}')
    (config / "consumerOffset.json").write_text("{")
    (config / "consumerOffset.json.bak").write_text('{"offsetTable":{"T@g":{0:1}}}')
    (config / "subscriptionGroup.json").write_text("")
    (config / "consumerFilter.json").write_bytes(b"\0\0")
    (config / "consumerFilter.json.bak").write_text("{")
    found = {
        one.path: (one.loads, one.loses) for one in config_outcomes(Store.open(tmp_path), traits_of("5.3.3"))
    }
    assert found == {
        "config/consumerFilter.json": (Loads.REFUSES, False),
        "config/consumerOffset.json": (Loads.BAK, True),
        "config/subscriptionGroup.json": (Loads.EMPTY, True),
        "config/topics.json": (Loads.PRIMARY, False),
    }
