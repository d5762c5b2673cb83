"""Workers are forked from a process that has Spark's code and the jobs ready."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rmqtool.pipeline import daemon
from tests.helpers import ROOT

SHOWN = """
import json, os, sys
from rmqtool.pipeline import daemon
daemon.prefer_installed()
daemon.load()
import pyspark
threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
known = [name in sys.modules for name in ("pyspark.worker", "rmqtool.pipeline.verify", "numba")]
print(json.dumps([pyspark.__file__, threads, known]))
"""


def test_what_a_fork_copies() -> None:
    installed = Path(pyspark.__file__).parent
    archives = [str(one) for one in sorted((installed / "python/lib").glob("*.zip"))]
    assert len(archives) == 2
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",  # as Spark sets it
        "PYTHONPATH": os.pathsep.join([*archives, str(ROOT)]),
    }
    done = subprocess.run(
        [sys.executable, "-c", SHOWN], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [str(installed / "__init__.py"), 1, [True, True, False]]


def test_archives_of_a_spark_that_is_not_installed_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = tmp_path / "pyspark/python/lib"
    lib.mkdir(parents=True)
    (tmp_path / "pyspark/__init__.py").touch()
    foreign = [str(lib / "pyspark.zip"), str(tmp_path / "else.zip")]
    monkeypatch.setattr(sys, "path", [*foreign, *sys.path])
    before = list(sys.path)
    daemon.prefer_installed()
    assert sys.path == before
    monkeypatch.setattr(sys, "path", [*before, str(tmp_path)])
    daemon.prefer_installed()
    assert sys.path == [*before[1:], str(tmp_path)]


def test_without_a_spark_besides_the_archives_they_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = tmp_path / "pyspark/python/lib"
    lib.mkdir(parents=True)
    (tmp_path / "pyspark/__init__.py").touch()
    path = [str(lib / "pyspark.zip"), str(lib / "py4j-src.zip"), str(tmp_path)]
    monkeypatch.setattr(sys, "path", list(path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "py4j" else object())
    daemon.prefer_installed()
    assert sys.path == path
