"""What is a store root, what is only a part of one, and that commands which need the whole say so."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress

import pytest

from rmqtool.errors import StoreIOError
from rmqtool.store.layout import Store
from rmqtool.store.roots import looks_like_root
from tests.disks import refuse
from tests.helpers import rmq

QUEUE_FILE = bytes(4000)


@pytest.fixture
def whole(fresh_golden):
    """A store with a configuration."""
    root = fresh_golden("v533-basic").path
    (root / "config").mkdir(exist_ok=True)
    (root / "config/topics.json").write_text("{}")
    return root


def make(root, *paths):
    for path in paths:
        place = root / path
        if path.endswith("/"):
            place.mkdir(parents=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(QUEUE_FILE if path[-1] == "0" else b"")


@pytest.mark.parametrize(
    "path", ["commitlog/", "consumequeue/", "index/", "config/", "abort", "lock", "checkpoint", "commitlog"]
)
def test_one_entry_makes_a_root(tmp_path, path):
    make(tmp_path, path)
    assert looks_like_root(str(tmp_path))
    assert rmq("doctor", tmp_path, "--as-version", "5.3.3").exit_code in {0, 1}


@pytest.mark.parametrize("topic", ["config", "index", "commitlog", "consumequeue"])
def test_a_topic_may_be_called_like_an_entry(tmp_path, topic):
    make(tmp_path, f"consumequeue/{topic}/0/{0:020}")
    assert not looks_like_root(str(tmp_path / "consumequeue"))
    done = rmq("doctor", tmp_path / "consumequeue")
    assert (done.exit_code, str(tmp_path) in done.stderr) == (2, True)


@pytest.mark.parametrize("path", ["lock", "abort", "index/src/main.rs", "config/settings.py"])
def test_other_programs_have_such_names_too(tmp_path, path):
    make(tmp_path, path)
    (tmp_path / path).write_text("something of another program altogether\n")
    assert not looks_like_root(str(tmp_path))


@pytest.mark.share
@pytest.mark.parametrize(
    "part", ["config", "checkpoint", "commitlog", "consumequeue", "index", "commitlog/00000000000000000000"]
)
@pytest.mark.parametrize("verb", [["doctor"], ["recover"], ["rebuild", "--what", "cq"]])
def test_what_needs_a_root_names_it(whole, part, verb):
    done = rmq(verb[0], whole / part, *verb[1:])
    assert done.exit_code == 2
    assert f"the store root is probably {whole}" in done.stderr


@pytest.mark.share
@pytest.mark.parametrize("part", ["config", "checkpoint", "consumequeue", "index"])
@pytest.mark.parametrize(
    "verb",
    [
        ["stats"],
        ["tail"],
        ["query-key", "k"],
        ["query-offset", "T", "0", "0"],
        ["show", "0"],
        ["sql", "select count(*) from messages"],
        ["export", "--to", "never.ndjson"],
    ],
)
def test_what_needs_the_log_names_the_root(whole, part, verb):
    done = rmq(verb[0], whole / part, *verb[1:])
    assert done.exit_code == 2
    assert f"the store root is probably {whole}" in done.stderr


def test_a_mailed_segment_is_no_root_and_answers_from_its_log(whole, tmp_path):
    mailed = tmp_path / "mailed"
    mailed.mkdir()
    shutil.copy(whole / "commitlog/00000000000000000000", mailed)
    done = rmq("doctor", mailed)
    assert (done.exit_code, "is a commitlog directory, not a store root" in done.stderr) == (2, True)
    assert rmq("stats", mailed).exit_code == 0


def test_the_directory_above_names_the_root_in_it(whole):
    done = rmq("doctor", whole.parent)
    assert (done.exit_code, f"the store root is probably {whole}" in done.stderr) == (2, True)


def test_a_root_that_can_be_looked_at_no_more_is_an_error_of_the_system(tmp_path, monkeypatch):
    """At whichever look the file system goes away: it is not called something else, and nothing is raw."""
    make(tmp_path, "commitlog/", "lock")
    for number in range(1, 50):
        looks: list[object] = []
        with monkeypatch.context() as patch:
            refuse(patch, "stat", errno.EIO, lambda *given: looks.append(given) or len(looks) == number)  # noqa: B023
            with suppress(StoreIOError):
                Store.open(tmp_path)
        if len(looks) < number:
            return
    pytest.fail("it never ends")
