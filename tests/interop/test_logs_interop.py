"""The generated bench logs are logs to the real store: it loads them whole and reads each message right."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from fixtures import logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    "body_size", [logs.BODY_1_KIB, pytest.param(logs.BODY_OF_300, marks=pytest.mark.full)]
)
def test_java_loads_a_generated_log_without_losing_anything(
    java_store: Callable[..., JavaStore], tmp_path: Path, body_size: int
) -> None:
    root = tmp_path / "store"
    facts = logs.write_log(root / "commitlog", 1_500_000, body_size=body_size, segment_size=1 << 18)
    before = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (root / "commitlog").iterdir()
    }
    with java_store(root, mappedFileSizeCommitLog=1 << 18) as store:
        assert store.call("bounds") == {"min": 0, "max": facts.end_offset}
        store.call("drain")
        records = store.records()
        blanks = store.blanks()
        queues = store.call("queues")
    after = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (root / "commitlog").iterdir()
    }
    assert {name: after[name] for name in before} == before
    assert (len(records), len(blanks)) == (facts.messages, facts.blanks)
    assert [record["keys"] for record in records] == [
        f"order-{number:010d}" for number in range(facts.messages)
    ]
    assert len({record["uniqKey"] for record in records}) == facts.messages
    assert records[100]["properties"] == {
        "UNIQ_KEY": records[100]["uniqKey"],
        "CLUSTER": "DefaultCluster",
        "TAGS": records[100]["tags"],
        "KEYS": records[100]["keys"],
        "WAIT": "true",
    }
    assert {record["storeSize"] for record in records} == {facts.record_size}
    assert len(queues) == logs.PARTITIONS
    assert sum(queue["max"] for queue in queues) == facts.messages
