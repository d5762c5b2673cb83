"""What `pipeline query-key` says of each store besides its messages; without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import healthy_store
from rmqtool.pipeline.keys.key_request import KeyRequest, Unit
from rmqtool.pipeline.keys.sums import StoreSums
from rmqtool.pipeline.keys.tasks import KeyTask
from rmqtool.pipeline.options import SourceOptions
from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("source", [KeySource.AUTO, KeySource.SCAN])
def test_a_log_whose_end_is_lost_is_not_all_that_was_asked(
    damaged: Callable[[str], Path], source: KeySource
) -> None:
    store = Store.open(damaged("v498-cq-past-max-last-abort"))
    local = find_keys(store, WantedKeys(("no such key",), "T"), source=source, reading=ReadOptions())
    assert [row["error"].endswith("the end of the log is lost") for row in local.not_covered] == [True]
    row = StoreSums().summary(store, KeyRequest(topic="T", source=source), [])
    assert (row["complete"], row["not_covered"]) == (False, local.not_covered)


def test_an_item_with_a_wrong_hash_among_those_of_a_key(tmp_path: Path) -> None:
    """Its file answers for nothing; asked alone, it leaves the answer incomplete, as in `query-key`."""
    made = healthy_store().write(tmp_path / "store")
    record = [one for one in made.of("Orders") if one.items[1][0].endswith("1")][3]
    path, number = record.items[1]
    made.spoil_hash(path, number)
    key = record.placed.data.split(b"KEYS\x01")[1].split(b"\x02")[0].decode().split()[0]
    store = Store.open(made.root)
    local = find_keys(
        store, WantedKeys((key,), "Orders"), source=KeySource.INDEX, reading=ReadOptions.of(store)
    )
    asked = KeyRequest(topic="Orders", source=KeySource.INDEX, keys=(key,))
    (batch,) = KeyTask(SimpleNamespace(value=asked), SourceOptions((str(made.root),)))(Unit(str(made.root)))
    sums = StoreSums()
    sums.add(json.loads(batch["note"][0].as_py()))
    row = sums.summary(store, asked, [])
    assert row["complete"] is False
    assert [one for one in row["not_covered"] if one["path"] == path] == [
        one for one in local.not_covered if one["path"] == path
    ]
    assert row["index_files_not_used"] == local.setbacks
