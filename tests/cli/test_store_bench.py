"""`rmqtool store bench`: that it measures, not what."""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.messagestore.bench import engines
from rmqtool.messagestore.bench.competitors import COMPETITORS, Keyed
from rmqtool.messagestore.bench.work import WORKS, LocalEngine
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEYS = {"type", "work", "engine", "body_bytes", "count", "seconds", "per_second", "ratio"}


def test_every_work_is_a_row_and_nothing_is_left(tmp_path: Path) -> None:
    asked = ["--engine", "rmqtool", "--engine", "sqlite", "--engine", "file", "--body", "9", "--count", "40"]
    done = rmq("store", "bench", tmp_path, *asked, "--json")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["work"] for row in rows if row["engine"] == "rmqtool"} == set(WORKS)
    assert all(row.keys() == KEYS and row["seconds"] > 0 and row["count"] > 0 for row in rows)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", COMPETITORS)
def test_each_competitor_answers_what_it_was_given(tmp_path: Path, name: str) -> None:
    if engines.missing(name) is not None:
        pytest.skip(f"no binding of {name}")
    items = [(b"key-%d" % number, b"record-%d" % number) for number in range(7)]
    store = COMPETITORS[name](tmp_path, sync=True)
    store.put(items[:1])
    store.put(items[1:])
    assert [bytes(one) for one in store.scan()] == [record for _, record in items]
    assert store.get(3) == b"record-3"
    assert isinstance(store, Keyed) == (name != "file")
    if isinstance(store, Keyed):
        assert store.find(b"key-5") == b"record-5"
    store.close()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="gives a link or directory to another user, which only root may"
)
def test_root_measures_in_no_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He could rename what is made in it, and put a link in its place."""
    his = tmp_path / "his"
    his.mkdir()
    os.chown(his, 1234, 1234)
    asked = ("--engine", "file", "--work", "put", "--count", "9")
    monkeypatch.setattr(tempfile, "tempdir", str(his))
    for place, what in (((his,), "DIR"), ((), "TMPDIR")):
        done = rmq("store", "bench", *place, *asked)
        assert (done.exit_code, done.stderr.startswith(f"rmqtool: {what} {his}: another user")) == (2, True)
    assert list(his.iterdir()) == []


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "missing", lambda engine, _: "not installed" if engine == "lmdb" else None)
    asked = ["--engine", "file", "--engine", "lmdb", "--work", "put", "--body", "9", "--count", "9"]
    done = rmq("store", "bench", tmp_path, *asked, "--json")
    assert json.loads(done.stdout)["summary"]["left_out"] == {"lmdb": "not installed"}
    assert "lmdb is left out" in done.stderr


def test_jars_that_are_none_are_a_usage_error(tmp_path: Path) -> None:
    done = rmq("store", "bench", tmp_path, "--java", tmp_path)
    assert done.exit_code == 2
    assert "--java: " in done.stderr
    assert "rocketmq-store-*.jar" in done.stderr
    assert "name the lib directory" in rmq("store", "bench", tmp_path, "--engine", "java").stderr


def test_copies_and_wrong_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqtool.cli.messagestore.bench.SEGMENT", 1 << 20)
    done = rmq("store", "bench", tmp_path, "--copy", "--json")
    assert [row["way"] for row in json.loads(done.stdout)["rows"]] == ["read_write", "mmap", "sendfile"]
    assert rmq("store", "bench", tmp_path, "--work", "nothing").exit_code == 2
    assert rmq("store", "bench", tmp_path / "absent").exit_code == 2


def test_an_engine_without_the_work_is_left_out(tmp_path: Path) -> None:
    result = rmq("store", "bench", tmp_path, "--work", "key", "--engine", "file", "--count", 50, "--json")
    assert result.exit_code == 0
    assert "file is left out: it does nothing of key" in result.stderr


def test_the_first_round_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cold: of the Java store, too, what counts is the best of as many rounds."""

    class Slower(LocalEngine):
        def works(self) -> dict[str, Callable[[], int]]:
            return {"put": self.put}

        def put(self) -> int:
            times.append(len(times))
            time.sleep(0.2 if len(times) == 1 else 0)
            return 1

        def close(self) -> None:
            pass

    times: list[int] = []
    monkeypatch.setattr(engines, "opened", lambda *_: Slower())
    (one,) = engines.measured(tmp_path, "rmqtool", ["put"], 256, 1)
    assert len(times) > 1
    assert one.seconds < 0.2
