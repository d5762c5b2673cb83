"""`rmqtool doctor` as people and scripts meet it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import broker_conf, damage_case
from rmqtool.broker.disk import Room
from rmqtool.cli.commands import COMMANDS
from rmqtool.output.text_style import cells
from tests.helpers import Result, rmq
from tests.recovery.corpus import observed

if TYPE_CHECKING:
    from collections.abc import Callable

SNAPSHOTS = Path(__file__).with_name("snapshots")


def asked(path: Path, case_id: str, *options: str) -> Result:
    case = damage_case(case_id)
    conf = path.parent / "broker.conf"
    conf.write_text(broker_conf(case.settings))
    return rmq("doctor", path, "--store-config", conf, *options)


@pytest.mark.parametrize(
    ("case_id", "exit_code", "safe"),
    [
        ("v533-none-healthy-clean", 0, True),
        ("v498-none-healthy-clean", 0, True),
        ("v533-record-body-middle-first-abort0", 1, False),
        ("v533-cq-one-queue-deleted-clean", 1, False),
        ("v498-layout-short-last-clean", 1, False),
    ],
)
def test_document(
    damaged: Callable[[str], Path],
    store_unchanged: Callable[[Path], Path],
    case_id: str,
    exit_code: int,
    safe: bool,
) -> None:
    case = damage_case(case_id)
    path = store_unchanged(damaged(case_id))
    result = asked(path, case_id, "--as-version", case.release, "--json")
    assert result.exit_code == exit_code
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["schema"] == "rmqtool.doctor/1"
    assert (document["version"], document["version_source"]) == (case.release, "given")
    assert document["safe_to_start"] is safe
    wanted = observed(case)
    assert document["starts"] is wanted["starts"]
    if wanted["starts"]:
        assert document["max_physical_offset"] == wanted["max_physical_offset"]
        assert document["min_physical_offset"] == wanted["min_physical_offset"]
        assert sorted(document["deletes"]) == wanted["deletes"]
        queues = {
            f"{q['topic']}-{q['queue_id']}": [q["min_offset"], q["max_offset"]] for q in document["queues"]
        }
        assert {name: bounds for name, bounds in queues.items() if bounds[1]} == wanted["queues"]
    else:
        assert document["refusal"]["path"] == "commitlog/00000000000000393216"


def test_one_flipped_byte_and_an_abort_file_cost_the_rest_of_the_log(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-record-body-middle-first-abort0"
    document = json.loads(asked(damaged(case_id), case_id, "--as-version", "5.3.3", "--json").stdout)
    loss = document["loss"]
    assert document["stop_reason"] == "bad_crc"
    assert loss["messages"] > 0
    assert sum(loss["topics"].values()) == loss["messages"]
    assert loss["ranges"][0]["from"] > document["stop_offset"]
    assert all(one["recoverable"] for one in loss["ranges"])
    assert document["truncates"][0]["position"] == document["stop_offset"] % 65536


PAGES = {
    "loss": ("v533-record-body-middle-first-abort0", "5.3.3", ["delete-consumequeue", "start-twice"]),
    "queue": ("v533-cq-one-queue-deleted-clean", "5.3.3", ["delete-consumequeue"]),
    "refused": ("v498-layout-short-last-clean", "4.9.8", []),
    "safe": ("v533-none-healthy-clean", "5.3.3", []),
}


@pytest.mark.parametrize("name", PAGES)
def test_page(damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Set RMQTOOL_UPDATE to write the pages again, then read what has changed."""
    case_id, release, cures = PAGES[name]
    monkeypatch.setattr("rmqtool.broker.disk.room_of", lambda _: Room(100 << 30, 80 << 30, 20 << 30))
    path = damaged(case_id)
    options = [word for cure in cures for word in ("--what-if", cure)]
    page = asked(path, case_id, "--as-version", release, *options).stdout
    page = page.replace(str(path.parent), "/data")
    place = SNAPSHOTS / f"doctor-{name}.txt"
    if "RMQTOOL_UPDATE" in os.environ:
        place.write_text(page)
    assert page == place.read_text()
    commands = [line for line in page.splitlines() if line.startswith("  rmqtool ")]
    assert commands
    assert all(cells(line) <= 80 for line in page.splitlines() if line not in commands)
    verdict = "Safe to start: " if name == "safe" else "DO NOT START: "
    assert page.startswith(verdict)


@pytest.mark.share
@pytest.mark.parametrize("name", PAGES)
def test_every_command_that_is_advised_exists_and_runs(damaged: Callable[[str], Path], name: str) -> None:
    case_id, release, _ = PAGES[name]
    document = json.loads(asked(damaged(case_id), case_id, "--as-version", release, "--json").stdout)
    assert document["advice"]
    for one in document["advice"]:
        program, *words = shlex.split(one["command"])
        assert program == "rmqtool"
        assert words[0] in COMMANDS
        assert rmq(*words).exit_code in {0, 1, 3}, one["command"]
        assert one["why"]


def test_cures_are_whole_documents(
    damaged: Callable[[str], Path], store_unchanged: Callable[[Path], Path]
) -> None:
    case_id = "v533-record-body-middle-first-abort0"
    path = store_unchanged(damaged(case_id))
    cures = ["--what-if", "remove-abort", "--what-if", "release 4.9.8", "--what-if", "remove-abort"]
    document = json.loads(asked(path, case_id, "--as-version", "5.3.3", *cures, "--json").stdout)
    without, older = document["what_if"]
    assert [without["cure"], older["cure"]] == ["remove-abort", "release 4.9.8"]
    assert (without["version"], without["mode"], without["safe_to_start"]) == ("5.3.3", "normal", True)
    assert older["version"] == "4.9.8"
    assert set(without) - {"cure"} <= set(document)
    assert document["safe_to_start"] is False


def test_a_cure_that_is_none(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-none-healthy-clean"
    result = asked(damaged(case_id), case_id, "--what-if", "reboot")
    assert result.exit_code == 2
    assert "unknown workaround reboot; known are delete-consumequeue" in result.stderr


def test_lag_is_what_the_queues_lack(damaged: Callable[[str], Path]) -> None:
    case_id = "v498-rebuild-body-abort0"
    path = damaged(case_id)
    document = json.loads(asked(path, case_id, "--as-version", "4.9.8", "--json").stdout)
    lags = {(one["topic"], one["queue_id"]): one for one in document["dispatch_lag"]}
    ends = {(one["topic"], one["queue_id"]): one["max_offset"] for one in document["queues"]}
    assert {key: one["messages"] for key, one in lags.items()} == ends
    assert sum(one["bytes"] for one in lags.values()) <= document["max_physical_offset"]
    first = next(iter(dump_rows(path)))
    assert min(one["oldest_timestamp"] for one in lags.values()) == first["store_timestamp"]


def dump_rows(path: Path) -> list[dict[str, Any]]:
    return rmq("dump", path, "--format", "ndjson", "--limit", 1).of_type("message")


def test_time_that_ends_at_once_leaves_the_answer_open(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-none-healthy-clean"
    result = asked(damaged(case_id), case_id, "--as-version", "5.3.3", "--budget", "1e-9", "--json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert (document["safe_to_start"], document["starts"]) == (None, None)
    assert (document["complete"], document["incomplete_reason"]) == (False, "budget")
    assert document["mode"] == "normal"
    assert document["not_looked_at"]
    assert any("--full" in one["command"] for one in document["advice"])


def test_time_that_ends_in_what_the_start_does_not_read(
    damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmqtool.recovery.diagnosis.ALLOWANCE", 70_000)
    case_id = "v533-none-healthy-clean"
    path = damaged(case_id)
    options = ("--as-version", "5.3.3", "--json")
    document = json.loads(asked(path, case_id, *options).stdout)
    older = range(document["start_segment"] // 65536 - 1)
    assert document["not_looked_at"] == [f"commitlog/{number * 65536:020d}" for number in older]
    assert (document["safe_to_start"], document["incomplete_reason"]) == (None, "budget")
    assert json.loads(asked(path, case_id, *options, "--full").stdout)["safe_to_start"] is True


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf"])
def test_a_budget_that_is_none(damaged: Callable[[str], Path], given: str) -> None:
    case_id = "v533-none-healthy-clean"
    result = asked(damaged(case_id), case_id, f"--budget={given}")
    assert result.exit_code == 2
    assert "--budget" in result.stderr


def test_without_a_release_every_possible_behaviour_counts(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-cq-all-deleted-clean"
    document = json.loads(asked(damaged(case_id), case_id, "--json").stdout)
    assert document["version_source"] == "inferred"
    assert document["versions_considered"][0] == document["version"] == "5.3.3"
    # releases up to 5.3.1 do not rebuild queues after a clean stop
    assert len(document["versions_considered"]) > 1
    assert document["safe_to_start"] is False


def test_a_listing_form_is_refused(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-none-healthy-clean"
    assert asked(damaged(case_id), case_id, "--format", "csv").exit_code == 2


def test_what_is_no_release_is_refused(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-none-healthy-clean"
    result = asked(damaged(case_id), case_id, "--as-version", "5.x")
    assert result.exit_code == 2
    assert "5.x is not a release" in result.stderr


def _as_terminal(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    monkeypatch.setattr("rmqtool.output.text_style.is_terminal", lambda _: True)
    monkeypatch.setenv("LINES", str(lines))


def test_the_verdict_stands_once_more_below_a_page_that_scrolled(
    damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = "v533-record-body-middle-first-abort0"
    path = damaged(case_id)
    _as_terminal(monkeypatch, 24)
    scrolled = asked(path, case_id, "--as-version", "5.3.3").stdout
    assert scrolled.count("DO NOT START") == 2
    assert scrolled.splitlines()[-1].startswith(f"→ rmqtool recover {path} ")
    _as_terminal(monkeypatch, 500)
    assert asked(path, case_id, "--as-version", "5.3.3").stdout.count("DO NOT START") == 1


def test_releases_that_do_the_same_are_one_block(damaged: Callable[[str], Path]) -> None:
    case_id = "v533-record-body-middle-first-abort0"
    path = damaged(case_id)
    result = asked(path, case_id)
    blocks = [line for line in result.stdout.splitlines() if line.startswith("What a broker ")]
    considered = json.loads(asked(path, case_id, "--json").stdout)["versions_considered"]
    assert all(sum(release in block for block in blocks) == 1 for release in considered)
    assert len(blocks) < len(considered)
    assert any(block.endswith(": the same") for block in blocks)


@pytest.mark.parametrize(("used", "said"), [(50, False), (69, False), (71, True), (84, True)])
def test_the_disk_is_spoken_of_near_a_threshold(
    damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, used: int, said: bool
) -> None:
    case_id = "v533-none-healthy-clean"
    room = Room(100 << 30, used << 30, (100 - used) << 30)
    monkeypatch.setattr("rmqtool.broker.disk.room_of", lambda _: room)
    monkeypatch.setattr("rmqtool.broker.disk.aged", lambda *_: 0)
    assert ("Disk:" in asked(damaged(case_id), case_id, "--as-version", "5.3.3").stdout) is said
