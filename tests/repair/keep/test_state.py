"""`abort` and the checkpoint of a repaired store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from formats.checkpoint import Checkpoint, parse_checkpoint
from rmqtool.repair.keep.state import LogFacts, state_edits
from rmqtool.repair.plan import Action
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

LOG = LogFacts(highest_timestamp=2000, last_timestamp=2000, last_start=900, end=1000, full_index_timestamp=0)
SOUND = {
    "physic_msg_timestamp": 2000,
    "logics_msg_timestamp": 1500,
    "index_msg_timestamp": 0,
    "master_flushed_offset": 0,
    "confirm_physical_offset": 1000,
}


def left(root: Path, *, changed: bool = False, **facts: int) -> dict[str, int] | None:
    """The values that the checkpoint gets, None where it stays."""
    (root / "commitlog").mkdir(parents=True, exist_ok=True)
    (root / "checkpoint").write_bytes(Checkpoint.build({**SOUND, **facts}))
    edits = {one.change.path: one for one in state_edits(Store.open(root), LOG, changed=changed)}
    if "checkpoint" not in edits:
        return None
    content = edits["checkpoint"].content
    assert content is not None
    found = parse_checkpoint(b"".join(map(bytes, content.chunks())))
    return {name: int(found[name]) for name in SOUND}


def test_one_that_may_be_stays(tmp_path: Path) -> None:
    assert left(tmp_path) is None


@pytest.mark.parametrize("confirm", [1001, 1 << 40, -1])
def test_a_confirm_offset_outside_the_log_becomes_the_last_record(tmp_path: Path, confirm: int) -> None:
    found = left(tmp_path, confirm_physical_offset=confirm)
    assert found is not None
    assert found["confirm_physical_offset"] == LOG.last_start


@pytest.mark.parametrize("name", ["physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp"])
@pytest.mark.parametrize("time", [2001, -1])
def test_a_time_that_no_record_has_goes(tmp_path: Path, name: str, time: int) -> None:
    found = left(tmp_path, **{name: time})
    assert found is not None
    assert (found["physic_msg_timestamp"], found["logics_msg_timestamp"]) == (2000, 2000)
    assert found["index_msg_timestamp"] == 0


def test_after_an_unclean_stop_it_is_that_of_a_clean_one(tmp_path: Path) -> None:
    (tmp_path / "abort").touch()
    found = left(tmp_path)
    assert found is not None
    assert found["logics_msg_timestamp"] == 2000
    paths = {
        one.change.path: one.change.action for one in state_edits(Store.open(tmp_path), LOG, changed=False)
    }
    assert paths["abort"] is Action.REMOVE
