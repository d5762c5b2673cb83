"""600 damaged tables that real managers loaded: what is salvaged has all that they had, and more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures import config_cases
from rmqtool.broker.traits import traits_of
from rmqtool.check.config_files import View
from rmqtool.recovery.config_tables import Loads, config_view, loads_as
from rmqtool.repair.config_union import united
from rmqtool.store.config_text import config_text
from rmqtool.store.layout import Store

KEYS = {
    "topics.json": "topicConfigTable",
    "subscriptionGroup.json": "subscriptionGroupTable",
    "consumerOffset.json": "offsetTable",
}


def store_of(root: Path, case: dict[str, Any]) -> Store:
    (root / "config").mkdir(parents=True)
    (root / "commitlog").mkdir()
    for part, end in (("main", ""), ("bak", ".bak")):
        if case[part] is not None:
            (root / "config" / f"{case['file']}{end}").write_bytes(bytes.fromhex(case[part]))
    return Store.open(root)


@pytest.mark.parametrize("release", ["4.9.7", "5.3.3"])
def test_nothing_that_a_broker_had_is_lost(tmp_path: Path, release: str) -> None:
    traits = traits_of(release)
    for number, case in enumerate(config_cases(release)):
        store = store_of(tmp_path / str(number), case)
        name = f"config/{case['file']}"
        found = united(store, name, traits)
        views = [
            config_view(case["file"], None if case[part] is None else bytes.fromhex(case[part]), traits)
            for part in ("main", "bak")
        ]
        assert found.loads is loads_as(*views), case["id"]
        had = case["result"]["table"] or ()
        if case["file"] in KEYS and had:
            assert found.data is not None, case["id"]
            assert set(had) <= set(found.data[KEYS[case["file"]]]), case["id"]
        if found.data is not None:
            assert config_view(case["file"], config_text(found.data).encode(), traits) is View.LOADS, case[
                "id"
            ]
        if found.loads is Loads.PRIMARY:
            assert found.lost == 0
