"""A log that lost its end: what only entries of queues tell of is lost, and said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fixtures import strict
from tests.helpers import rmq


@pytest.mark.parametrize("name", ["v533-basic", "v498-lmq", "v533-batchcq"])
def test_what_lay_in_the_last_segment_is_counted(fresh_golden: Any, name: str) -> None:
    root = fresh_golden(name).path
    segment = max((root / "commitlog").iterdir())
    gone = {at: one for at, one in strict.carve(root).items() if at >= int(segment.name) and one.placed}
    segment.unlink()
    summary = json.loads(rmq("recover", root, "--json").stdout)["summary"]
    assert (summary["lost"]["messages"], summary["lost"]["bytes"]) == (
        len(gone),
        sum(one.size for one in gone.values()),
    )
    assert "the log was longer" in summary["notes"][0]


def test_entries_that_are_noise_are_no_lost_messages(fresh_golden: Any) -> None:
    """In the place of one that the log has, or further away than a log goes on."""
    root = fresh_golden("v533-basic").path
    files = [max(queue.iterdir()) for queue in (root / "consumequeue/TopicA").iterdir()]
    for file in files:
        data = bytearray(file.read_bytes())
        last = max(at for at in range(0, len(data), 20) if any(data[at : at + 20])) if any(data) else 0
        data[last : last + 8] = (10**9).to_bytes(8, "big")
        if last + 40 <= len(data):
            data[last + 20 : last + 40] = (2**62).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8)
        file.write_bytes(data)
    summary = json.loads(rmq("recover", root, "--json").stdout)["summary"]
    assert (summary["lost"]["messages"], summary["notes"]) == (0, [])
