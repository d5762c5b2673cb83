"""Starts that are refused: state files of a wrong kind, links that lead nowhere, what cannot be read."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

import pytest

from fixtures import copy_base
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState
from tests.helpers import rmq
from tests.recovery import laws
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import SEGMENT, STATE_LINKS, filled, linked, start, write

if TYPE_CHECKING:
    from pathlib import Path


@shows("DR-REFUSE-QUEUE-TYPE", "DR-REFUSE-CHECKPOINT")
def test_a_checkpoint_or_queue_of_the_wrong_kind(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "config").mkdir()
    attributes = '{"topicConfigTable":{"T":{"topicName":"T","attributes":{"queue.type":"BatchCQ"}}}}'
    (root / "config" / "topics.json").write_text(attributes)
    (root / "consumequeue" / "T" / "0").mkdir(parents=True)
    assert "DR-REFUSE-QUEUE-TYPE" in codes(start(root))
    (root / "checkpoint").mkdir()
    assert "DR-REFUSE-CHECKPOINT" in codes(start(root, "4.9.8"))
    (root / "checkpoint").rmdir()
    (root / "checkpoint").symlink_to("checkpoint")
    assert "DR-REFUSE-CHECKPOINT" in codes(start(root, "4.9.8"))
    (root / "checkpoint").unlink()
    (root / "checkpoint").symlink_to("nothing")
    assert "DR-REFUSE-CHECKPOINT" not in codes(start(root, "4.9.8"))


def test_an_index_file_that_is_a_link_to_itself(tmp_path: Path) -> None:
    """4.9 starts all the same (`DefaultMessageStore#load`)."""
    root = write(tmp_path, filled())
    (root / "index").mkdir(exist_ok=True)
    (root / "index" / "20261121093930931").symlink_to("20261121093930931")
    assert "DR-REFUSE-INDEX" in codes(start(root, "5.3.3"))
    assert "DR-REFUSE-INDEX" not in codes(start(root, "4.9.8"))


@pytest.mark.share
@pytest.mark.parametrize(("name", "where", "release"), STATE_LINKS)
def test_a_link_that_leads_nowhere_in_the_place_of_a_state_file(
    name: str, where: str, release: str, tmp_path: Path
) -> None:
    """As the real stores start with each, see `tests/interop/test_ways_out_interop.py`."""
    _, outcome = linked(name, where, release, tmp_path)
    refused = where != "there/x" and (release == "5.3.3" or not name.startswith("abort"))
    assert outcome.starts is not refused
    assert outcome.verdict is (Verdict.UNSAFE if refused else Verdict.SAFE)
    assert outcome.mode == ("normal" if name == "abort" else "abnormal")
    if refused:
        code = "DR-REFUSE-" + name.upper().removesuffix(".BAK")
        assert laws.of(outcome, code)


@shows("DR-ABORT-LINK")
@pytest.mark.parametrize("where", ["missing/x", "there/x", "itself"])
def test_a_link_behind_which_abort_is_never_made(where: str, tmp_path: Path) -> None:
    """4.9.8 takes its own crash for a clean stop; 5.3.3 makes the file behind the link, or does not start."""
    root, outcome = linked("abort", where, "4.9.8", tmp_path)
    (found,) = of(outcome, "DR-ABORT-LINK")
    assert found.paths == ("abort",)
    assert outcome.verdict is Verdict.SAFE
    assert "DR-ABORT-LINK" not in codes(simulate(Store.open(root), "5.3.3"))
    asked = ("--as-version", "4.9.8", "--json")
    advice = json.loads(rmq("doctor", root, *asked).stdout)["advice"]
    assert shlex.split(advice[0]["command"]) == ["rm", str(root / "abort")]
    (root / "abort").unlink()
    assert "DR-ABORT-LINK" not in rmq("doctor", root, *asked).stdout


@shows("DR-REFUSE-LOCK")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_directory_in_the_place_of_the_lock(tmp_path: Path, release: str) -> None:
    """Measured with both: opening it fails before anything is loaded."""
    root = write(tmp_path, filled())
    (root / "lock").mkdir()
    assert "DR-REFUSE-LOCK" in codes(start(root, release))


@shows("DR-REFUSE-INDEX")
def test_a_directory_among_index_files_refuses_after_recovery(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "index" / "20260101000000000").mkdir(parents=True)
    (root / "commitlog" / f"{SEGMENT * 3:020d}").write_bytes(bytes(SEGMENT))
    found = start(root)
    assert {"DR-REFUSE-INDEX", "DR-REFUSED-LATE"} <= codes(found)
    assert of(found, "DR-REFUSED-LATE")[0].paths == (f"commitlog/{SEGMENT * 3:020d}",)
    assert "DR-REFUSE-INDEX" not in codes(start(root, "4.9.8"))


@shows("DR-LOCK-UNKNOWN")
def test_a_lock_that_cannot_be_known(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    unknown = LockState(None, None, "record lock cannot be probed")
    assert "DR-LOCK-UNKNOWN" in codes(start(root, lock=unknown))
    remote = LockState(False, None, "not locked, but locks of other hosts may be invisible on nfs4")
    assert "DR-LOCK-UNKNOWN" in codes(start(root, lock=remote))
    assert "DR-LOCK-UNKNOWN" not in codes(start(root))


@shows("DR-OTHER-OWNER")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["commitlog/*", "consumequeue/*/0/*", "checkpoint", "lock", "index/*"])
def test_a_file_of_root_in_the_store_of_another_user(name: str, tmp_path: Path) -> None:
    """4.9.8 and 5.3.3, run as that user, did not load it; 4.9.8 goes on without the index."""
    root = copy_base("v533-a-clean", tmp_path / "store")
    every = [root, *root.rglob("*")]
    for path in every:
        os.chown(path, 65_534, 65_534)
    sizes = config_of({"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 4000})
    assert not of(simulate(Store.open(root, config=sizes), "5.3.3"), "DR-OTHER-OWNER")
    (root / "lock").touch()
    os.chown(root / "lock", 65_534, 65_534)
    found = min(root.glob(name))
    os.chown(found, 0, 0)
    found.chmod(0o644)
    outcome = simulate(Store.open(root, config=sizes), "5.3.3")
    (one,) = of(outcome, "DR-OTHER-OWNER")
    assert (one.paths, one.facts["count"]) == ((found.relative_to(root).as_posix(),), 1)
    assert outcome.verdict is Verdict.UNSAFE
    older = simulate(Store.open(root, config=sizes), "4.9.8")
    assert bool(of(older, "DR-OTHER-OWNER")) is (name != "index/*")
    found.chmod(0o664)  # the user may be in any group
    assert not of(simulate(Store.open(root, config=sizes), "5.3.3"), "DR-OTHER-OWNER")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_store_of_which_its_owner_may_write_nothing(tmp_path: Path) -> None:
    """It was made as root: nobody knows as which user the broker runs."""
    root = copy_base("v533-a-clean", tmp_path / "store")
    os.chown(root, 65_534, 65_534)
    sizes = config_of({"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 4000})
    assert not of(simulate(Store.open(root, config=sizes), "5.3.3"), "DR-OTHER-OWNER")
