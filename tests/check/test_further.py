"""Light queues that lack messages which the log has for them (`INNER_MULTI_DISPATCH`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.goldens import open_golden
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

_UNIT = 20


def found(root: Path, conf: Path) -> dict[tuple[str, str], int]:
    """Code and path of findings about records without a unit in light queues → how many."""
    result = rmq("verify", root, "--format", "ndjson", "--store-config", conf)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {
        (row["code"], row["path"]): row["found"]
        for row in rows
        if row.get("code") in ("CQ-BEHIND", "X-GHOST") and "%LMQ%" in row["path"]
    }


@pytest.mark.parametrize("name", ["v498-lmq", "v533-lmq", "b533-lmq"])
def test_messages_that_a_light_queue_lacks_are_found(name: str, tmp_path: Path) -> None:
    """No start builds their units where other queues reach the end of the log."""
    golden = open_golden(name, tmp_path)
    assert found(golden.path, golden.config_path) == {}
    queue = min((golden.path / "consumequeue").glob("%LMQ%*")) / "0"
    last = max(queue.iterdir())
    raw = last.read_bytes()
    units = next(at for at in range(0, len(raw) + 1, _UNIT) if not any(raw[at : at + _UNIT])) // _UNIT
    last.write_bytes(raw[: (units - 1) * _UNIT] + bytes(len(raw) - (units - 1) * _UNIT))
    path = str(last.relative_to(golden.path))
    assert found(golden.path, golden.config_path) == {("CQ-BEHIND", path): 1}
    for file in queue.iterdir():
        file.unlink()
    assert {code for code, _ in found(golden.path, golden.config_path)} == {"X-GHOST"}
