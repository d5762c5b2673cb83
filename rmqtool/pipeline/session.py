"""Spark sessions as the jobs want them."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rmqtool.errors import MissingExtraError, RmqtoolError, StoreIOError, UsageError
from rmqtool.java import java_program, search_path
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

JAVA = 17
"""the oldest Java that Spark 4 runs on"""
_LOCAL_MASTER = re.compile(r"local(\[(\d+|\*)(\s*,\s*\d+)?\])?", re.ASCII)
ATTEMPTS = 4
"""times that a task is tried before its part is given up"""

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "rmqtool.pipeline.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
"""The last keeps workers from importing what lies in the directory that the command is run in."""
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
}
"""where all tasks run here: Java makes objects of what comes in at Spark's ports, so nobody else gets in"""


@contextmanager
def one_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, light: bool = False
) -> Iterator[SparkSession]:
    """`make_session` for the time of a block; a session that was there before stays.

    light: for jobs whose work is done in Python, while Java hands out tasks. Java then starts with its quick
    compiler only, which spares a third of all that a short command costs. Raises `StoreIOError` where
    Java ends before the block does.
    """
    session, own = None, False
    try:
        from pyspark.sql import SparkSession as Known

        own = Known.getActiveSession() is None
        wanted = {_WAREHOUSE: Path(tempfile.gettempdir()).as_uri(), **(settings or {})}
        session = make_session(master, _lightened(wanted) if light else wanted)
        yield session
    except gone_errors() as error:
        if hasattr(error, "java_exception"):  # Java is there and says what went wrong
            raise
        raise StoreIOError("Spark has ended: its Java process is gone") from error
    finally:
        if session is not None and own:
            _stop(session)


def gone_errors() -> tuple[type[Exception], ...]:
    """What questions to a Java process that has ended raise; empty without pyspark."""
    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return ()
    return (Py4JError, ConnectionRefusedError, ConnectionResetError)


def _stop(session: SparkSession) -> None:
    with warnings.catch_warnings(), suppress(*gone_errors()):
        warnings.simplefilter("ignore")  # that Java has ended is reported elsewhere
        session.stop()


def _lightened(settings: Mapping[str, str]) -> Mapping[str, str]:
    return {**settings, _JAVA_OPTIONS: f"-XX:TieredStopAtLevel=1 {settings.get(_JAVA_OPTIONS, '')}"}


def check_java() -> None:
    """Raises `UsageError` in one line where Spark would end in a shell script's error."""
    needs = f"Spark needs Java {JAVA} or later"
    program = java_program(needs)
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < JAVA:
        shown = found[1] if found else "of no known version"
        raise UsageError(f"{needs}: {program} is {shown}")


def make_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, name: str = "rmqtool"
) -> SparkSession:
    """The session at hand, or a new one with the settings that the data source and the jobs want.

    master: as Spark has it; None is what spark-submit says, else `local[*]`. A local master gets retries of
    tasks, which Spark leaves out there. settings: Spark's own, on top of ours. Raises `UsageError` without
    pyspark or Java and for a local master that is none, `StoreIOError` where Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError("pipeline", "spark") from error
    if re.match(r"local(?!-cluster)", master or "") and not _LOCAL_MASTER.fullmatch(master or ""):
        raise UsageError(f"--master {master}: it is not local, local[N] or local[*]")
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        check_java()
    address = master if master is not None or submitted else "local[*]"
    own = _LOCAL if address is not None and _LOCAL_MASTER.fullmatch(address) else {}
    wanted = {**_SETTINGS, **own, **(settings or {})}
    wanted[_JAVA_OPTIONS] = " ".join([_logging(), wanted.get(_JAVA_OPTIONS, "")]).strip()
    builder = SparkSession.builder.appName(name)
    if address is not None:
        builder = builder.master(with_retries(address))
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with _environment(wanted), _silence() as said:
        try:
            session: SparkSession = builder.getOrCreate()
        except KeyboardInterrupt as error:
            _end_launched(error)
            raise
        except Exception as error:
            raise _not_started(error, said, master) from error
    session.sparkContext.setLogLevel("OFF")
    for logger in ("SQLQueryContextLogger", "py4j"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # errors are raised as well
    _quiet_counting(session)
    return session


def _quiet_counting(session: SparkSession) -> None:
    """That Java has ended is reported by who waits for it, not by the thread that counts for it."""
    server = session.sparkContext._accumulatorServer  # noqa: SLF001 - Spark has no other way to it
    reported = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
            reported(request, address)

    server.handle_error = handle_error  # type: ignore[method-assign, assignment]


def with_retries(master: str) -> str:
    """A local master that tries tasks again when the worker that runs them dies."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{found[1] or 1},{ATTEMPTS}]" if found else master


def is_local(session: SparkSession) -> bool:
    """Whether all tasks run in processes of this machine, none of which is an executor."""
    return _LOCAL_MASTER.fullmatch(str(session.sparkContext.master)) is not None


def parallelism(session: SparkSession) -> int:
    """Tasks that run at once, about."""
    return max(int(session.sparkContext.defaultParallelism), 1)


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without the stacks of two languages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    raised = _raised(lines)
    reported = re.sub(r"^\[[A-Z_.]+\] |\.? SQLSTATE: \w+.*$", "", raised[-1] if raised else lines[0])
    return hide(reported)[:300]


def _raised(lines: Iterable[str]) -> list[str]:
    """What the errors among these lines say, without their names."""
    found = (re.match(r"[^\[]*?[\w.$]*(?:Error|Exception|Lost): (\S.*)", line) for line in lines)
    return [one[1].strip() for one in found if one is not None]


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


def _not_started(error: BaseException, said: IO[bytes], master: str | None) -> RmqtoolError:
    """Why Spark did not start: what the launcher of Java said last, else what Spark says."""
    said.seek(0)
    text = said.read().decode(errors="replace")
    refused = re.search(r"^(.+)\nError: Could not create the Java Virtual Machine", text, re.MULTILINE)
    if refused is not None:
        return UsageError(f"Java does not start: {refused[1][:300]}")
    lines = _raised(text.splitlines())
    reason = lines[-1][:300] if lines else first_line(error)
    if "stopped SparkContext" in reason:
        return StoreIOError(f"Spark does not start: {master or 'the master'} does not answer")
    if re.match("Master must|Could not parse Master", reason):
        return UsageError(f"--master {master}: {reason}")
    return StoreIOError(f"Spark does not start: {reason}")


def _end_launched(error: BaseException) -> None:
    """Ends a Java that pyspark was starting: it would miss a file that goes now, and stay for ever."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.kill()


def _logging() -> str:
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """What Java and the workers inherit: where Spark is, this interpreter and this code."""
    own: dict[str, Any] = {
        "SPARK_HOME": os.environ.get("SPARK_HOME", _spark_home()),
        "PATH": search_path(),  # Spark's scripts look for Java and others
    }
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


def _spark_home() -> str:
    """Where pyspark's own Spark is; pyspark itself looks into the parent of the current directory first."""
    import pyspark

    package = Path(str(pyspark.__file__)).parent
    places = (package / "spark-distribution", package, package.parents[1])
    return str(next((one for one in places if (one / "bin" / "spark-submit").is_file()), package))


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_WAREHOUSE = "spark.sql.warehouse.dir"
"""for tables of Spark's own; made when any name is looked up, by default in the current directory"""


def _put(values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
