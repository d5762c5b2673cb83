"""The far side of `javastore.JavaStore`: a process with a JVM that answers one JSON line with one JSON line.

It runs by itself (``python -m tests.interop.driver``) because a process can hold one JVM with one release,
and because a JVM that stops badly should not take the tests with it. It ends with ``os._exit``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OPENED_PACKAGES = ("java.lang", "java.nio", "java.util", "jdk.internal.ref", "sun.nio.ch")
EXPORTED_PACKAGES = ("jdk.internal.ref", "sun.nio.ch")

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""stores of tests live for seconds: what Java compiles well it does not earn back"""


def start_jvm(classpath: list[str], quiet: str, home: str, *, quick: bool) -> None:
    """The JVM with what RocketMQ needs opened, no log files and a home directory of the test's own."""
    import jpype  # type: ignore[import-untyped]

    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    flags += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in EXPORTED_PACKAGES]
    flags += [f"-D{name}={quiet}" for name in ("logback.configurationFile", "rmq.logback.configurationFile")]
    flags += [f"-Duser.home={home}", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"]
    flags += ["-Xmx1g", "-XX:MaxDirectMemorySize=1g", *(QUICK if quick else ())]
    jpype.startJVM(*flags, classpath=classpath, convertStrings=True)


class Driver:
    """Requests by name: of the JVM here, of stores, clients and tables in the modules beside it."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[..., Any]] = {"start_jvm": self.start_jvm}

    def start_jvm(
        self, release: str, artifact: str, classpath: list[str], quiet: str, home: str, quick: bool
    ) -> str:
        """Start Java; only then can the store, or the client, be imported. Returns Java's version."""
        start_jvm(classpath, quiet, home, quick=quick)
        from jpype import JClass

        if artifact == "client":
            from tests.interop.driver_client import Client

            self.calls = Client().calls()
        elif artifact == "broker":
            from tests.interop.driver_tables import Tables

            self.calls = Tables().calls()
        else:
            from tests.interop.driver_store import Store

            self.calls = Store(release).calls()
        return str(JClass("java.lang.System").getProperty("java.version"))

    def answer(self, line: str) -> dict[str, Any]:
        """Carry out one request; any failure, Java's too, becomes an ``error``."""
        request = json.loads(line)
        try:
            return {"result": self.calls[request["call"]](**request["arguments"])}
        except Exception as error:  # noqa: BLE001 - the other side decides what it means
            return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Serve until standard input ends. Whatever Java prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    driver = Driver()
    for line in sys.stdin:
        answers.write(json.dumps(driver.answer(line)) + "\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
