"""A dozen incidents to their end: a real broker serves what the printed commands have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.broker.settings import settings_of
from rmqtool.store.layout import FileKind, Store
from tests.cli.test_next_commands import INCIDENTS, to_the_end
from tests.helpers import rmq
from tests.interop.broker import Broker
from tests.interop.conftest import require

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.full]
RELEASE = "5.3.3"


def served(broker: Broker, topic: str, first: int, end: int) -> bytes:
    """All of queue 0, pulled from its first offset to its end, records as stored."""
    records = b""
    while first < end:
        following, found = broker.pull(topic, first)
        assert following > first
        first, records = following, records + found
    return records


def stored(root: Path, topic: str, first: int, end: int) -> bytes:
    """The same, as it lies in the files."""
    found = b""
    rows = rmq("query-offset", root, topic, 0, first, "-n", end - first, "--format", "ndjson")
    for row in rows.of_type("message"):
        with (root / row["path"]).open("rb") as file:
            file.seek(row["position"])
            found += file.read(row["store_size"])
    return found


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_real_broker_serves_the_end_of_it(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require(request.config, RELEASE, "broker")
    root = to_the_end(name, tmp_path)
    store = Store.open(root)
    settings, geometry = settings_of(store), next(iter(store.index_geometry.values()))
    sizes = {
        "mappedFileSizeCommitLog": settings.commit_log_size,
        "mappedFileSizeConsumeQueue": store.sizes[FileKind.CONSUMEQUEUE].value,
        "mapperFileSizeBatchConsumeQueue": store.sizes[FileKind.BATCHCONSUMEQUEUE].value,
        "mappedFileSizeConsumeQueueExt": store.sizes[FileKind.CONSUMEQUEUE_EXT].value,
        "enableConsumeQueueExt": "true",
        "maxHashSlotNum": geometry.slots,
        "maxIndexNum": geometry.items,
    }
    wanted = {
        row["topic"]: (row["min_offset"], row["max_offset"])
        for row in rmq("info", root, "--format", "ndjson").of_type("queue")
        if row["queue_id"] == 0 and row["kind"] == "consumequeue" and row["topic"] in store.topics
    }
    records = {topic: stored(root, topic, *bounds) for topic, bounds in wanted.items() if bounds[1]}
    assert len(records) > 5
    (tmp_path / "home").mkdir()
    with Broker(RELEASE, root, tmp_path / "home", **sizes) as broker:
        for topic, record in records.items():
            assert served(broker, topic, *wanted[topic]) == record, topic
        broker.stop()
    assert rmq("doctor", root, "--as-version", RELEASE).exit_code == 0
