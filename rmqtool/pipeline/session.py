"""Spark sessions as the jobs want them."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rmqtool.errors import MissingExtraError, StoreIOError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

JAVA = 17
"""the oldest Java that Spark 4 runs on"""
ATTEMPTS = 4
"""times that a task is tried before its part is given up"""

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
}


@contextmanager
def one_session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """`make_session` for the time of a block; a session that was there before stays."""
    session, own = None, False
    try:
        from pyspark.sql import SparkSession as Known

        own = Known.getActiveSession() is None
        session = make_session(master, settings)
        yield session
    finally:
        if session is not None and own:
            session.stop()


def check_java() -> None:
    """Raises `UsageError` in one line where Spark would end in a shell script's error."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    where = f"JAVA_HOME is {home}" if home else "there is no java in PATH and JAVA_HOME is not set"
    needs = f"Spark needs Java {JAVA} or later"
    if program is None or not os.access(program, os.X_OK):
        raise UsageError(f"{needs}: {where}")
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < JAVA:
        shown = found[1] if found else "no version that it tells"
        raise UsageError(f"{needs}: {program} is {shown}")


def make_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, name: str = "rmqtool"
) -> SparkSession:
    """The session at hand, or a new one with the settings that the data source and the jobs want.

    master: as Spark has it; None is what spark-submit says, else `local[*]`. A local master gets retries of
    tasks, which Spark leaves out there. settings: Spark's own, on top of ours. Raises `UsageError` without
    pyspark or Java, `StoreIOError` where Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError("pipeline", "spark") from error
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        check_java()
    wanted = {**_SETTINGS, **_logging(), **(settings or {})}
    builder = SparkSession.builder.appName(name)
    if master is not None or not submitted:
        builder = builder.master(with_retries(master or "local[*]"))
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with _environment(wanted), _silence() as said:
        try:
            session: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise StoreIOError(f"Spark does not start: {_reason(error, said)}") from error
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors are raised as well
    return session


def with_retries(master: str) -> str:
    """A local master that tries tasks again when the worker that runs them dies."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{found[1] or 1},{ATTEMPTS}]" if found else master


def parallelism(session: SparkSession) -> int:
    """Tasks that run at once, about."""
    return max(int(session.sparkContext.defaultParallelism), 1)


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without the stacks of two languages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"(Caused by: )?[\w.$]*(Error|Exception|Lost): \S", line)]
    text = raised[-1] if raised else lines[0]
    text = re.sub(r"^(Caused by: )?[\w.$]+?(Exception|Error): ", "", text)
    return re.sub(r"^\[[A-Z_.]+\] |\.? SQLSTATE: \w+.*$", "", text)[:300]


@contextmanager
def _silence() -> Iterator[IO[bytes]]:
    """Gives the Java process that is started meanwhile a file in the place of standard error."""
    with tempfile.TemporaryFile() as said:
        before = os.dup(2)
        try:
            os.dup2(said.fileno(), 2)
            yield said
        finally:
            os.dup2(before, 2)
            os.close(before)


def _reason(error: BaseException, said: IO[bytes]) -> str:
    """What the launcher of Java said last, else what Spark says."""
    said.seek(0)
    lines = [line for line in said.read().decode(errors="replace").splitlines() if "rror" in line]
    return lines[-1].strip()[:300] if lines else first_line(error)


def _logging() -> dict[str, str]:
    place = Path(__file__).with_name("log4j2.properties").as_uri()
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={place}"}


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """What the workers inherit: this interpreter and this code."""
    own: dict[str, Any] = {}
    if "spark.pyspark.python" not in settings and "PYSPARK_PYTHON" not in os.environ:
        own["PYSPARK_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parents[2])
    paths = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    if root not in paths:
        own["PYTHONPATH"] = os.pathsep.join([*paths, root])
    before = {key: os.environ.get(key) for key in own}
    try:
        _put(own)
        yield
    finally:
        _put({key: before[key] for key in own if key != "PYSPARK_PYTHON"})


def _put(values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
