"""The Java store, measured in a JVM of its own by `StoreBench.java`, which Java compiles when it starts.

What is measured runs for two seconds before, so that the JVM has compiled it; the time is the JVM's own.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.java import java_program

if TYPE_CHECKING:
    from typing import IO

_SOURCE = Path(__file__).with_name("StoreBench.java")
NEEDS = "the Java store needs a JDK, 11 or later"
_STORE_JAR = "rocketmq-store-*.jar"
_WORKS = frozenset(
    {"put", "put_many", "put_sync", "put_sync_16", "consume_raw", "consume_objects", "get_random", "key"}
)
_OPENED = ("java.lang", "java.nio", "java.util", "jdk.internal.ref", "sun.nio.ch")
"""packages of Java that RocketMQ 4.9 reaches into"""
_NANO = 1e9
WARM_SECONDS = 2.0
"""that a work runs before it is measured"""
_STOP_SECONDS = 60


def check_jars(jars: Path) -> None:
    """Raises `UsageError` for a directory without the Java store."""
    if not any(jars.glob(_STORE_JAR)):
        raise UsageError(f"{jars} holds no {_STORE_JAR}: name the lib directory of a RocketMQ release")


class JavaEngine:
    """`DefaultMessageStore` of the jars in a directory, with the settings of the message store beside it."""

    def __init__(
        self, root: Path, jars: Path, body_bytes: int, number: int, warm_seconds: float = WARM_SECONDS
    ) -> None:
        check_jars(jars)
        program = java_program(NEEDS)
        ways = itertools.product(("opens", "exports"), _OPENED)
        opened = [f"--add-{way}=java.base/{package}=ALL-UNNAMED" for way, package in ways]
        given = [
            os.fspath(_SOURCE),
            os.fspath(root),
            str(body_bytes),
            str(number),
            str(int(warm_seconds * _NANO)),
        ]
        self._log: IO[str] = (root / "log").open("w+", errors="replace")
        self._process = subprocess.Popen(  # noqa: S603
            [program, *opened, f"-Duser.home={root}", "-cp", os.path.join(jars.resolve(), "*"), *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=root,
        )
        self._asked = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)
        try:
            self._answer()
        except BaseException:
            self._asked.close()
            self._end()
            raise

    def measure(self, work: str, rounds: int) -> tuple[int, float] | None:
        """See `Engine.measure`."""
        if work not in _WORKS:
            return None
        with suppress(BrokenPipeError):
            self._asked.write(f"{work} {rounds}\n")
            self._asked.flush()
        count, nanoseconds = self._answer().split()
        return int(count), int(nanoseconds) / _NANO

    def _answer(self) -> str:
        line = self._answers.readline()
        if not line:
            self._failed()
        return line

    def _failed(self) -> NoReturn:
        self._process.wait()
        self._log.seek(0)
        lines = [one.strip() for one in self._log if one.strip()]
        cause = next((one for one in lines if "rror" in one or "xception" in one), "")
        raise StoreIOError(f"the Java store ended with {self._process.returncode}: {cause or lines[-1:]}")

    def close(self) -> None:
        """See `Engine.close`."""
        with suppress(BrokenPipeError):
            self._asked.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for one in (self._answers, self._log):
            one.close()
