"""Records of an earlier life behind the end of the log: what readers leave out comes back in no result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = 4096


def rewritten(root: Path, kept: int, fresh: list[int]) -> int:
    """A log that was cut behind `kept` records and went on with larger ones; how many messages it has.

    The offsets of the old ones go on behind those of the new ones in their queue.
    """
    before, log = HandmadeLog(segment_size=SEGMENT), HandmadeLog(segment_size=SEGMENT)
    for number in range(20):
        then = FIRST_TIME + number
        before.put("Orders", b"o" * 60, queue_id=0, store_timestamp=then, born_timestamp=then - 1)
    for record in before.records[:kept]:
        log.put_raw(record.data)
    for number, size in enumerate(fresh):
        then, slot = FIRST_TIME + 100_000 + number, kept + number
        log.put(
            "Orders",
            b"n" * size,
            queue_id=0,
            queue_offset=slot,
            store_timestamp=then,
            born_timestamp=then - 1,
        )
    (root / "commitlog").mkdir(parents=True)
    old = before.files()[0]
    (root / "commitlog" / f"{0:020d}").write_bytes(bytes(log.segments[0]) + old[log.end_offset :])
    (root / "abort").touch()
    return kept + len(fresh)


@pytest.mark.parametrize(("kept", "fresh"), [(3, [200]), (3, [400, 400]), (1, [700, 5]), (5, [60, 60, 3])])
def test_what_was_cut_off_does_not_come_back(kept: int, fresh: list[int], tmp_path: Path) -> None:
    """`recover` went by the order of queues, which such records keep: they became messages, with exit 0."""
    count = rewritten(tmp_path / "store", kept, fresh)
    assert json.loads(rmq("stats", tmp_path / "store", "--json").stdout)["summary"]["messages"] == count
    done = rmq("recover", tmp_path / "store", "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["summary"]["lost"]["messages"] == 0
    assert [one["why"] for one in found["rows"] if one["path"].startswith("commitlog/")] == ["stale-tail"]
    assert json.loads(rmq("stats", tmp_path / "out", "--json").stdout)["summary"]["messages"] == count
