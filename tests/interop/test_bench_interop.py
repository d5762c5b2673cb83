"""The Java store as `store bench --java` measures it, of both releases."""

from __future__ import annotations

import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rmqtool.java import java_program
from rmqtool.messagestore.bench.java import JavaEngine
from tests.helpers import rmq
from tests.interop.jars import jars

if TYPE_CHECKING:
    from pathlib import Path

DOES = {"put", "put_many", "put_sync", "put_sync_16", "consume_raw", "consume_objects", "get_random", "key"}


def test_the_java_store_is_measured(tmp_path: Path, release: str) -> None:
    modules = subprocess.run(
        [java_program("Java"), "--list-modules"], capture_output=True, text=True, check=True
    )
    if "jdk.compiler" not in modules.stdout:
        pytest.skip("this Java is not a JDK: the Java store is measured from source")
    lib = jars(release)[0].parent
    with closing(JavaEngine(tmp_path, lib, 9, 40, warm_seconds=0)) as engine:
        found = {work: engine.measure(work, 1) for work in sorted(DOES)}
        assert engine.measure("key_many", 1) is None
    assert all(one is not None and one[0] > 0 and one[1] > 0 for one in found.values())


def test_a_java_that_fails_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "rocketmq-store-0.jar").write_bytes(b"no jar")
    asked = ["--engine", "java", "--java", tmp_path, "--work", "put", "--body", "9", "--count", "9", "--json"]
    done = rmq("store", "bench", tmp_path, *asked)
    assert done.exit_code == 0
    assert "java is left out: the Java store ended with 1" in done.stderr
