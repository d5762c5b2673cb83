"""Topics whose names are not shown as they are, in stores that are opened more than once."""

from __future__ import annotations

import pytest

from tests.helpers import rmq


@pytest.mark.share
@pytest.mark.parametrize("topic", ["back\\slash", "a\ttab", "turned\u202eround"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_queue_goes_on_in_its_own_directory(tmp_path, topic, clean):
    root = tmp_path / "store"
    assert rmq("store", "init", root).exit_code == 0
    for _ in range(3):
        assert rmq("store", "put", root, topic, "--body", "x", "--queue", 0).exit_code == 0
        if not clean:
            (root / "abort").touch()
    assert [one.name for one in (root / "consumequeue").iterdir()] == [topic]
    found = rmq("store", "get", root, topic, 0, "--format", "ndjson")
    assert (found.exit_code, found.stdout.count('"type":"message"')) == (0, 3)
