"""What `verify` says that it did not cover: what cannot be read, and the rest behind an interrupt."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fixtures.stores import HandmadeStore, healthy_store
from rmqtool.check import verify
from rmqtool.check.levels import PHASE_PATHS, Phase
from rmqtool.errors import ExitCode
from tests.cli.test_said_not_hidden import unlisted
from tests.disks import refuse
from tests.helpers import rmq


@pytest.fixture
def store(tmp_path: Path) -> HandmadeStore:
    return healthy_store().write(tmp_path / "store")


def reported(root: Path, *options: object) -> tuple[int, dict[str, Any]]:
    result = rmq("verify", root, *options, "--format", "ndjson")
    return result.exit_code, result.rows[-1]


@pytest.mark.share
@pytest.mark.parametrize("level", [(), ("--quick",), ("--deep",)])
@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "consumequeue/Orders", "index", "config"])
def test_a_directory_that_cannot_be_listed(
    store: HandmadeStore, monkeypatch: pytest.MonkeyPatch, name: str, level: tuple[str, ...]
) -> None:
    unlisted(monkeypatch, name.rpartition("/")[2])
    code, summary = reported(store.root, *level)
    assert code == ExitCode.INCOMPLETE
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "unreadable")
    assert [(row["path"], row["reason"]) for row in summary["not_covered"]] == [(name, "unreadable")]
    assert summary["not_covered"][0]["error"]


@pytest.mark.parametrize(
    "name",
    [
        "commitlog/00000000000000032768",
        "consumequeue/Orders/0/00000000000000001200",
        "index/20231114229000000",
        "checkpoint",
        "config/topics.json",
    ],
)
def test_an_entry_that_is_no_plain_file(store: HandmadeStore, name: str) -> None:
    path = store.root / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    code, summary = reported(store.root)
    assert code == ExitCode.INCOMPLETE
    assert {row["path"] for row in summary["not_covered"]} == {name}


def test_a_checkpoint_that_cannot_be_read(store: HandmadeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "open", when=lambda path, *_: path.endswith("/checkpoint"))
    code, summary = reported(store.root)
    assert (code, [row["path"] for row in summary["not_covered"]]) == (ExitCode.INCOMPLETE, ["checkpoint"])


def test_dead_links_in_the_place_of_a_directory_and_in_a_further_root(
    store: HandmadeStore, tmp_path: Path
) -> None:
    shutil.rmtree(store.root / "index")
    (store.root / "index").symlink_to("nowhere")
    more = tmp_path / "more"
    more.mkdir()
    (more / f"{40960:020d}").symlink_to("gone")
    code, summary = reported(store.root, "--commitlog", more)
    assert code == ExitCode.INCOMPLETE
    assert {row["path"] for row in summary["not_covered"]} == {"index", f"../more/{40960:020d}"}


def test_a_strange_entry_elsewhere_is_no_part_of_the_store(store: HandmadeStore) -> None:
    os.mkfifo(store.root / "a-pipe-of-somebody")
    code, summary = reported(store.root)
    assert (code, summary["complete"]) == (ExitCode.OK, True)


@pytest.mark.share
@pytest.mark.parametrize("phase", [Phase.LOG, Phase.QUEUES, Phase.INDEX, Phase.STATE])
def test_an_interrupt_tells_the_rest(
    store: HandmadeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    where = {
        Phase.LOG: "blank_findings",
        Phase.QUEUES: "check_units",
        Phase.INDEX: "IndexedLog",
        Phase.STATE: "check_state",
    }[phase]

    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, where, interrupted)
    other = healthy_store().write(tmp_path / "other").root
    code, summary = reported(store.root)
    assert code == ExitCode.INTERRUPTED
    assert (summary["incomplete_reason"], summary["stopped_in"]) == ("interrupted", phase.name.lower())
    rows = summary["not_covered"]
    there = ("commitlog", "consumequeue", "index", "config")
    paths = [path for one, path in PHASE_PATHS.items() if one >= phase and path in there]
    assert [row["path"].split("/")[0] for row in rows] == paths
    if phase is Phase.LOG:
        assert rows[0]["physical_offset"] == summary["covered_to"] > 0
        end = sum(path.stat().st_size for path in (store.root / "commitlog").iterdir())
        assert rows[0]["length"] == end - summary["covered_to"]

    result = rmq("verify", store.root, other, "--format", "ndjson")
    last = result.rows[-1]
    assert [row["path"].split("/")[0] for row in last["not_covered"][:-1]] == paths
    assert {row["store"] for row in last["not_covered"][:-1]} == {str(store.root)}
    assert last["not_covered"][-1] == {"path": str(other), "reason": "interrupted"}
