"""Links that lead out of a store: neither written nor copied unless it is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rmqtool.errors import UsageError
from rmqtool.repair.plan import Action
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.repair.carrying import apply
from tests.repair.smallstore import QUEUE, SECOND, SEGMENT, edit, make_store, plan_of, tree


@pytest.fixture
def small(tmp_path):
    return make_store(tmp_path / "small")


def outside(place: Path, elsewhere: Path) -> Path:
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    return elsewhere


@pytest.mark.parametrize("path", [SEGMENT, "checkpoint", "consumequeue/T/0", "consumequeue"])
def test_nothing_is_written_behind_a_link_out_of_the_store(small, tmp_path, path):
    elsewhere = outside(small / path, tmp_path / "elsewhere")
    before = (tree(small), tree(elsewhere))
    with pytest.raises(UsageError, match="leads out of the store by a link"):
        apply(small, tmp_path / "backup")
    assert (tree(small), tree(elsewhere)) == before
    assert not (tmp_path / "backup").exists()


def copied(root: Path, out: Path, edits: list, **how: bool) -> list[str]:
    store = Store.open(root)
    planned = plan_of(store, edits)
    copy = prepare_copy(store, planned, str(out), **how)
    apply_to_copy(store, planned, copy, quarantine=f"{out}.quarantine")
    return copy.tree.left_out


def test_what_links_out_of_the_store_lead_to_is_not_copied(small, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (small / "config/secret").symlink_to(tmp_path / "secret")
    outside(small / "consumequeue/T/1", tmp_path / "queue")
    outside(small / SECOND, tmp_path / "segment")
    (small / "inner").symlink_to("config")
    out = tmp_path / "out"
    left = ["commitlog/" + Path(SECOND).name, "config/secret", "consumequeue/T/1", "inner/secret"]
    edits = [edit(Action.WRITE, SEGMENT, b"x", position=1)]
    assert copied(small, out, edits) == left
    assert not any((out / one).exists() for one in left)
    assert (out / "inner/topics.json").read_bytes() == b"{}"
    assert copied(small, tmp_path / "all", edits, follow_links=True) == []
    assert (tmp_path / "all/config/secret").read_bytes() == b"secret"


def test_a_copy_cannot_change_what_it_leaves_out(small, tmp_path):
    outside(small / SEGMENT, tmp_path / "segment")
    with pytest.raises(UsageError, match="cannot be changed in a copy"):
        copied(small, tmp_path / "out", [edit(Action.WRITE, SEGMENT, b"x", position=1)])
    assert not (tmp_path / "out").exists()


def test_what_a_link_out_of_the_store_leads_to_is_no_evidence(small, tmp_path):
    outside(small / QUEUE, tmp_path / "queue")
    copied(small, tmp_path / "out", [edit(Action.PUT, QUEUE, b"new")])
    assert (tmp_path / "out" / QUEUE).read_bytes() == b"new"
    assert not (tmp_path / "out.quarantine" / "files" / QUEUE).exists()


def test_a_commitlog_that_is_a_link_is_a_root(small, tmp_path):
    outside(small / "commitlog", tmp_path / "log")
    apply(small, tmp_path / "backup")
    assert (tmp_path / "log" / Path(SEGMENT).name).read_bytes()[100:109] == b"tombstone"
    assert copied(small, tmp_path / "out", []) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user, which only root may")
def test_root_writes_nothing_behind_a_link_of_another_user(fresh_golden, tmp_path):
    golden, victim, link = fresh_golden("v533-basic"), tmp_path / "victim", tmp_path / "link"
    victim.mkdir()
    link.symlink_to(victim)
    os.chown(link, 1234, 1234, follow_symlinks=False)
    plan = ("--store-config", golden.config_path, "--as-version", "5.3.3", "--save-plan", link / "plan")
    for command in (
        ("export", golden.path, "--to", link / "m.ndjson"),
        ("salvage", golden.path / "commitlog", "--output", link / "out"),
        ("checkpoint", "set", golden.path, *plan),
    ):
        done = rmq(*command)
        assert (done.exit_code, "another user may change" in done.stderr) == (2, True), command
    assert list(victim.iterdir()) == []


@pytest.mark.skipif(
    os.geteuid() != 0, reason="gives a link or directory to another user, which only root may"
)
@pytest.mark.parametrize("on_the_way", [False, True])
def test_root_changes_no_store_behind_a_link_of_another_user(fresh_golden, tmp_path, *, on_the_way):
    """The store is named by a path that its owner may lead to any other store, or to an empty directory."""
    golden, link, new = fresh_golden("v533-basic"), tmp_path / "link", tmp_path / "new"
    new.mkdir()
    link.symlink_to(golden.path.parent if on_the_way else golden.path)
    named, fresh = (link / golden.path.name, link / "fresh") if on_the_way else (link, tmp_path / "to")
    if not on_the_way:
        fresh.symlink_to(new)
        os.chown(fresh, 1234, 1234, follow_symlinks=False)
    os.chown(link, 1234, 1234, follow_symlinks=False)
    given = ("--store-config", golden.config_path)
    before = tree(golden.path), sorted(golden.path.parent.iterdir())
    way = ("--in-place", "--backup", tmp_path / "kept", "--apply")
    for command in (
        ("store", "put", named, "T", "--body", "x", *given),
        ("store", "expire", named, *given),
        ("store", "init", fresh, *given),
        ("checkpoint", "set", named, "--physic", "now", *way, *given),
        ("rebuild", named, *way, *given),
    ):
        done = rmq(*command)
        assert (done.exit_code, "another user may change" in done.stderr) == (2, True), (command, done.stderr)
    assert (tree(golden.path), sorted(golden.path.parent.iterdir())) == before
    assert list(new.iterdir()) == []
    os.chown(link, 0, 0, follow_symlinks=False)
    assert rmq("store", "put", named, "T", "--body", "x", *given).exit_code == 0


def test_commands_tell_and_take_the_option(fresh_golden, tmp_path):
    golden = fresh_golden("v533-basic")
    root, out = golden.path, tmp_path / "out"
    outside(root / "checkpoint", tmp_path / "checkpoint")
    outside(next((root / "consumequeue").iterdir()), tmp_path / "topic")
    before = (tmp_path / "checkpoint").read_bytes()
    command = ["checkpoint", "set", root, "--store-config", golden.config_path, "--as-version", "5.3.3"]
    in_place = ["--in-place", "--backup", tmp_path / "backup", "--apply"]
    refused = rmq(*command, *in_place)
    assert (refused.exit_code, "--follow-links" in refused.stderr) == (2, True)
    assert rmq(*command, "--output", out, "--apply").exit_code == 2
    assert (tmp_path / "checkpoint").read_bytes() == before
    done = rmq(*command, *in_place, "--follow-links")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "checkpoint").read_bytes() != before
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 2
    assert rmq("undo", tmp_path / "backup", "--apply", "--follow-links").exit_code == 0
    assert (tmp_path / "checkpoint").read_bytes() == before
    os.unlink(root / "checkpoint")
    (root / "checkpoint").write_bytes(before)
    done = rmq(*command, "--output", out, "--apply", "--json")
    assert (done.exit_code, "is not copied" in done.stderr) == (3, True), done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert (summary["complete"], len(summary["not_covered"])) == (False, 1)
