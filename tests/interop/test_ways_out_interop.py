"""Real stores refuse where doctor says so, and start on what the advised command made."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.helpers import rmq
from tests.interop.conftest import require
from tests.interop.javastore import JavaError, JavaStore
from tests.recovery.stores import STATE_LINKS, linked
from tests.repair.test_ways_out import (
    FOREIGN,
    QUEUES,
    SCENARIOS,
    SIZES,
    WANTED,
    asked,
    instead,
    made,
    without_log,
)
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.javastore import JavaProcess

pytestmark = pytest.mark.interop

OF_THE_STORE = (
    "length-segment",
    "length-queue",
    "length-directory",
    "length-directory-queue",
    "name-segment",
    "name-queue",
    "checkpoint",
    "abort",
    "abort-bak",
    "record-size",
    "index",
)
"""refusals that are not the broker's, whose tables and threads the store does not have"""


@pytest.mark.share
@pytest.mark.parametrize("name", sampled(OF_THE_STORE, kind=lambda name: "-" in name, each=2))
def test_a_store_that_refuses_starts_after_the_advice(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, idle: dict[str, list[JavaProcess]]
) -> None:
    release = require(request.config, SCENARIOS[name].release)
    root, conf, reported = made(name, tmp_path)
    assert reported["advice"][0]["command"].split()[1] == "recover"
    options = ("--store-config", conf, "--as-version", release)
    done = rmq("recover", root, *options, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    shutil.copytree(root, tmp_path / "tried", symlinks=True)
    try:
        with JavaStore(release, tmp_path / "tried", idle=idle[release], **SIZES) as java:
            assert not java.loaded
    except JavaError:
        pass
    with JavaStore(release, tmp_path / "out", idle=idle[release], **SIZES) as java:
        assert java.loaded


@pytest.mark.share
@pytest.mark.parametrize(("path", "wanted"), sampled(WANTED, kind=lambda one: one[1], each=4, unpack=True))
def test_a_store_starts_and_goes_on_where_a_file_was_in_the_place_of_a_directory(
    path: str, wanted: str, tmp_path: Path, request: pytest.FixtureRequest, idle: dict[str, list[JavaProcess]]
) -> None:
    release = require(request.config, wanted)
    root, conf = instead(path, release, tmp_path)
    options = ("--store-config", conf, "--as-version", release, "--in-place", "--backup", tmp_path / "b")
    done = rmq("recover", root, *options, "--apply")
    assert done.exit_code == 0, done.stderr
    with JavaStore(release, root, idle=idle[release], **SIZES) as java:
        assert java.loaded
        before = {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")}
        for number in (0, 9):
            java.put("OrderTopic", b"new", queue_id=number, keys="new")
        java.call("drain")
        after = {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")}
        assert after == before | {("OrderTopic", 0): before["OrderTopic", 0] + 1, ("OrderTopic", 9): 1}


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "where", "wanted"),
    sampled(STATE_LINKS, kind=lambda one: (one[0], one[2]), unpack=True),
)
def test_links_that_lead_nowhere_in_the_place_of_state_files(
    name: str,
    where: str,
    wanted: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    idle: dict[str, list[JavaProcess]],
) -> None:
    release = require(request.config, wanted)
    root, outcome = linked(name, where, release, tmp_path)
    ends = {(one.topic, one.queue_id): one.max_offset for one in outcome.queues if one.max_offset}
    try:
        with JavaStore(release, root, idle=idle[release], **SIZES) as java:
            assert java.loaded is outcome.starts
            if java.loaded:
                assert {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")} == ends
    except JavaError:
        assert outcome.starts is False


@pytest.mark.parametrize("queues", QUEUES)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_log_of_foreign_files_alone(
    foreign: str,
    queues: str,
    release: str,
    tmp_path: Path,
    idle: dict[str, list[JavaProcess]],
) -> None:
    """A real store refuses or destroys the queues, as doctor says."""
    root, conf = without_log(foreign, release, queues, tmp_path)
    reported = asked(root, conf, release)
    before = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    try:
        with JavaStore(release, root, idle=idle[release], start=False, **SIZES) as java:
            assert java.loaded is reported["starts"]
    except JavaError:
        assert reported["starts"] is False
    gone = {path for path in before if not (root / path).exists()} - {"lock", "abort"}
    assert gone == set(reported["deletes"])


def test_a_crash_behind_an_abort_that_leads_nowhere(
    release: str, tmp_path: Path, idle: dict[str, list[JavaProcess]]
) -> None:
    """4.9.8 makes no file behind the link, so that its next start is that after a clean stop; 5.3.3 does."""
    root, outcome = linked("abort", "there/x", release, tmp_path)
    told = any(one.code == "DR-ABORT-LINK" for one in outcome.consequences)
    java = JavaStore(release, root, **SIZES)
    java.put("OrderTopic", b"new")
    java.call("drain")
    java.kill()
    assert (root / "abort").exists() is not told
    assert (root / "abort").is_symlink()
    with JavaStore(release, root, idle=idle[release], **SIZES) as java:
        assert java.loaded
    assert not (root / "abort").is_symlink()
