"""Sessions have our settings beside those of the user."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from rmqtool.errors import UsageError
from rmqtool.pipeline.runner import run_each
from rmqtool.pipeline.session import (
    _end_launched,
    _environment,
    check_java,
    is_local,
    make_session,
    one_session,
    with_retries,
)
from rmqtool.store.modes import mask
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "made"),
    [
        ("local", "local[1,4]"), ("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"), ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)  # fmt: skip
def test_local_masters_try_again(master: str, made: str) -> None:
    assert with_retries(master) == made


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,1]", "local[2 , 1]"])
def test_what_spark_takes_for_local_is_local(master: str) -> None:
    assert is_local(cast("SparkSession", SimpleNamespace(sparkContext=SimpleNamespace(master=master))))


@pytest.mark.parametrize("master", ["local[x]", "local[", "local[2", "localhost", "local[-1]", "local[2,x]"])
def test_a_local_master_that_is_none_is_a_usage_error(master: str) -> None:
    with pytest.raises(UsageError, match=f"^--master {re.escape(master)}: it is not local, "):
        make_session(master)


def test_options_of_java_are_added_to_ours(spark: SparkSession) -> None:
    properties = spark.sparkContext._jvm.java.lang.System
    assert properties.getProperty("log4j2.configurationFile").endswith("/rmqtool/pipeline/log4j2.properties")
    assert properties.getProperty("rmqtool.tests") == "yes"


@pytest.mark.parametrize(
    ("light", "given", "used"),
    [(False, "-Da=b", "-Da=b"), (True, "-Da=b", "-XX:TieredStopAtLevel=1 -Da=b")],
)
def test_a_light_session_lets_the_user_have_the_last_word(
    light: bool, given: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an option that is given twice, Java takes the last."""

    class Made:
        def stop(self) -> None:
            """Nothing runs."""

    asked: list[tuple[str | None, Mapping[str, str] | None]] = []

    def make(master: str | None, settings: Mapping[str, str] | None) -> Made:
        asked.append((master, settings))
        return Made()

    monkeypatch.setattr("rmqtool.pipeline.session.make_session", make)
    with one_session("local", {"spark.driver.extraJavaOptions": given}, light=light):
        pass
    [(master, settings)] = asked
    assert (master, (settings or {})["spark.driver.extraJavaOptions"]) == ("local", used)
    assert (settings or {})["spark.sql.warehouse.dir"] == Path(tempfile.gettempdir()).as_uri()


def here(item: str) -> tuple[str, bool, str]:
    """Whether a worker would import what lies in its current directory, and who gets at it."""
    return item, bool(sys.flags.safe_path), os.environ.get("PYTHONSAFEPATH", "")


def test_workers_import_nothing_from_the_current_directory(spark: SparkSession) -> None:
    ((_, (reported,)),) = run_each(spark, {"a": ["worker"]}, here)
    assert reported == ("worker", True, "1")


def test_a_local_session_is_reached_by_nobody_else(spark: SparkSession) -> None:
    """Java makes objects of what comes in at Spark's ports."""
    reported = spark.sparkContext.getConf()
    assert reported.get("spark.driver.host") == reported.get("spark.driver.bindAddress") == "127.0.0.1"
    assert reported.get("spark.authenticate") == "true"


def test_no_spark_is_started_from_the_current_directory(tmp_path: Path) -> None:
    """pyspark takes one from the parent directory, where a stranger's store may be."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "here").mkdir()
    programs = {
        tmp_path / "bin" / "spark-submit": f"touch {tmp_path / 'started'}",
        tmp_path / "java" / "bin" / "java": 'echo \'openjdk version "17.0.1"\'; [ "$1" = -version ]',
    }
    for path, text in programs.items():
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    code = "from rmqtool.pipeline.session import make_session; make_session('local')"
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(tmp_path / "java")},
        cwd=tmp_path / "here",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Spark does not start" in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("way", [".", "", "bin"])
def test_no_java_of_the_current_directory_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """PATH may have it in it, as an empty entry has, and JAVA_HOME may be relative."""
    for program in (tmp_path / "java", tmp_path / "bin" / "java"):
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for home, path in (("", f"{way}:"), (".", os.environ["PATH"])):
        monkeypatch.setenv("JAVA_HOME", home)
        monkeypatch.setenv("PATH", path)
        with pytest.raises(UsageError, match="Spark needs Java"):
            check_java()
    monkeypatch.setenv("PATH", f"{way}:/usr/bin:.")
    with _environment({}):
        assert os.environ["PATH"] == "/usr/bin"
    assert not (tmp_path / "started").exists()


def test_what_spark_keeps_meanwhile_is_for_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.cli.context import Context
    from rmqtool.cli.options import OutputOptions
    from rmqtool.cli.pipeline.spark import SparkOptions

    masks = []

    @contextmanager
    def started(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        masks.append(mask())
        yield SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None))

    monkeypatch.setattr("rmqtool.pipeline.session.one_session", started)
    before = os.umask(0o022)
    try:
        for given in ({}, {"readers": 0o750}):
            with SparkOptions().session(Context(OutputOptions()), **given):
                pass
        assert (masks, mask()) == ([0o077, 0o027], 0o022)
    finally:
        os.umask(before)


def test_a_java_that_is_being_started_ends_with_an_interruption() -> None:
    def launch_gateway() -> None:
        proc = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        launched.append(proc)
        raise KeyboardInterrupt

    launched: list[subprocess.Popen[bytes]] = []
    with pytest.raises(KeyboardInterrupt) as raised:
        launch_gateway()
    _end_launched(raised.value)
    with launched[0] as process:
        assert process.wait(10) == -signal.SIGKILL


def parent(item: str) -> str:
    """The command line of the process that a worker was forked from."""
    return item + Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " ")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
def test_workers_come_from_our_daemon(spark: SparkSession) -> None:
    ((_, (reported,)),) = run_each(spark, {"a": ["forked from "]}, parent)
    assert str(reported).split()[-2:] == ["rmqtool.pipeline.daemon", "pyspark.worker"]


@pytest.mark.parametrize(
    ("error", "reported"), [(EOFError(), False), (ConnectionResetError(), False), (ValueError(), True)]
)
def test_a_java_that_was_killed_leaves_no_stack_of_the_thread_that_counts(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], error: Exception, reported: bool
) -> None:
    try:
        raise error
    except type(error):
        spark.sparkContext._accumulatorServer.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" in capsys.readouterr().err) is reported
