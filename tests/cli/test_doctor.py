"""`rmqtool doctor` as people and scripts meet it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import broker_conf, damage_case
from tests.helpers import Result, rmq
from tests.recovery.corpus import observed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


def test_the_page_begins_with_the_verdict(damaged: Callable[[str], Path]) -> None:
    case_id = "v498-layout-short-last-clean"
    result = asked(damaged(case_id), case_id, "--as-version", "4.9.8")
    assert result.stdout.splitlines()[0] == "Do not start this broker yet."
    assert "no: " in result.stdout


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
    assert "5.x is no release" in result.stderr
