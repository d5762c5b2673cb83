"""Room behind the end of the log: it is zeros once a store is open, whatever lay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from formats.commitlog import Blank
from formats.primitives import sizeof
from rmqtool.broker.encoder import blank
from tests.messagestore.helpers import SMALL, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = SMALL["mappedFileSizeCommitLog"]
WHAT = {"bytes": b"old bytes", "far behind": bytes(600) + b"old bytes", "a filler": None}


@pytest.mark.parametrize("what", WHAT)
def test_what_lies_behind_the_end_of_the_log_is_cleared(tmp_path: Path, what: str) -> None:
    with open_small(tmp_path) as store:
        for message in traffic(0, 5):
            store.put(message)
        end = store.end
    segment, position = max((tmp_path / "commitlog").iterdir()), end % SEGMENT
    left = WHAT[what] or blank(SEGMENT - position)[: sizeof(Blank)]
    assert position + len(left) < SEGMENT
    with segment.open("r+b") as file:
        file.seek(position)
        file.write(left)
    with open_small(tmp_path) as store:
        assert store.end == end
    assert not any(segment.read_bytes()[position:])
