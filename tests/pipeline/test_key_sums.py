"""What `pipeline query-key` says of each store besides its messages; without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.pipeline.keys.key_request import KeyRequest
from rmqtool.pipeline.keys.sums import StoreSums
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
