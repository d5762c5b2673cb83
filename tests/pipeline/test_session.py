"""Sessions have our settings beside those of the user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqtool.pipeline.runner import run_each
from rmqtool.pipeline.session import _end_launched, one_session, with_retries

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    ((_, (told,)),) = run_each(spark, {"a": ["forked from "]}, parent)
    assert str(told).split()[-2:] == ["rmqtool.pipeline.daemon", "pyspark.worker"]
