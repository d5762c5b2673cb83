"""`pipeline rebuild` writes what `rebuild --output` writes, whatever the log is cut into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from fixtures.builder import HandmadeLog
from formats.batch import encode_client_message
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.rebuild import WORK
from rmqtool.store.layout import Store
from tests.helpers import held, rmq, snapshot
from tests.pipeline.comparing import Differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from fixtures import Golden

SMALL = ("--part-size", "32768")
APPLY = ("--apply", "--apply-unproven")
"""pipeline rebuild does not check what it has made"""
REPORTED = (
    "records", "queues", "units", "blank_units", "misplaced_units", "records_without_unit", "kept_units",
    "index_items", "bad_bodies", "queues_without_records", "deleted_topics", "complete", "not_covered",
)  # fmt: skip


def tree(root: Path) -> dict[str, tuple[int, str | None, int]]:
    """Mode, digest and, of files, modification time by path."""
    found = snapshot(root) if root.is_dir() else {}
    return {
        path: (one.mode, one.sha256, one.mtime_ns if one.sha256 is not None else 0)
        for path, one in found.items()
        if path != "."
    }


def compare(stores: Iterable[Path], place: Path, *options: str) -> None:
    """All stores in one job, and each by the local command."""
    stores, out = list(stores), place / "out"
    place.mkdir(exist_ok=True)
    done = rmq("pipeline", "rebuild", *stores, "--output", out, "--json", *options, *SMALL)
    summary = json.loads(done.stdout)
    parts = {part["store"]: part for part in summary["stores"]}
    folders = {unquote(one.name.removeprefix("store=")): one for one in out.iterdir()}
    codes, differences = set(), Differences()
    for number, store in enumerate(stores):
        local = place / str(number)
        one = rmq("rebuild", store, "--output", local, *APPLY, "--format", "ndjson", *options)
        codes.add(one.exit_code)
        made = tree(folders[str(store)]) if str(store) in folders else {}
        differences.compare(store, "files", made, tree(local))
        reported: dict[str, Any] = one.rows[-1]
        part = parts[str(store)]
        summaries = [{name: one.get(name) for name in REPORTED} for one in (part, reported)]
        differences.compare(store, "summary", *summaries)
    differences.none()
    assert done.exit_code == (3 if 3 in codes else max(codes))
    assert not list(place.glob("*.part"))


def with_log(paths: Iterable[Path]) -> Iterable[Path]:
    """Those that a rebuild takes."""
    for path in paths:
        try:
            if len(Store.open(path).segments):
                yield path
        except RmqtoolError:
            continue


def test_files_are_those_of_the_local_command(
    spark: SparkSession, goldens: dict[str, Path], damaged_stores: dict[str, Path], tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    log = HandmadeLog()  # which tells of batch queues behind other parts
    for number in range(400):
        log.put("T" if number % 50 == 0 else "Plain", bytes(200), {"KEYS": "k"})
    base = {"INNER_BASE": "8", "INNER_NUM": "2"}
    log.put("T", encode_client_message(b"part") * 2, base, queue_offset=8, sys_flag=0x80)
    log.write(bare / "commitlog")
    some = [goldens["v498-basic"], goldens["v533-batchcq"], bare]
    compare([*some, *with_log(damaged_stores.values())], tmp_path, "--keep-expired")


def test_one_store_has_no_directory_of_its_own_and_a_killed_run_is_done_again(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (tmp_path / "out.part" / WORK / "0").mkdir(parents=True)  # what a killed run leaves
    command = ("pipeline", "rebuild", goldens["v498-basic"], "--output", out)
    done = rmq(*command, "--what", "cq", "--topic", "TopicA")
    assert done.exit_code == 0, done.stderr
    assert [one.relative_to(out).as_posix() for one in sorted(out.glob("*/*"))] == ["consumequeue/TopicA"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out"]
    again = rmq(*command)
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    inside = rmq("pipeline", "rebuild", goldens["v498-basic"], "--output", goldens["v498-basic"] / "new")
    assert (inside.exit_code, "lies in the store" in inside.stderr) == (2, True)


def test_a_store_whose_tasks_die_is_not_built(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmqtool.pipeline import rebuild
    from tests.pipeline.failing import DyingIndex

    monkeypatch.setattr(rebuild, "BuildTask", DyingIndex)
    stores = [goldens["v533-batchcq"]]
    done = rmq("pipeline", "rebuild", *stores, "--output", tmp_path / "out", "--json")
    summary = json.loads(done.stdout)
    assert (done.exit_code, summary["complete"]) == (3, False)
    assert "not_covered" in summary
    assert not list(tmp_path.iterdir())


def test_a_store_with_a_running_broker_is_refused_before_anything_is_read(
    spark: SparkSession, goldens: dict[str, Path], fresh_golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    live = fresh_golden("v498-edge").path
    with held(live):
        done = rmq("pipeline", "rebuild", goldens["v498-basic"], live, "--output", tmp_path / "out")
    assert (done.exit_code, done.stderr.count("\n")) == (5, 1), done.stderr
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("out")]
