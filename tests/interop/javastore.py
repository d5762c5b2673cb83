"""The real Java message store of one release, in a process of its own, driven over JSON lines."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

from tests.helpers import ROOT
from tests.interop.jars import jars, quiet_logging

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = ("4.9.8", "5.3.3")
SECONDS = 120
MOST_STORES = 60
"""a store that was shut down keeps timers, and these its buffers: the heap is full after some 120"""
_NUMBERS = itertools.count()


class JavaError(Exception):
    """Java, or the process that it runs in, refused; the text is its own."""


class JavaProcess:
    """A JVM with the jars of one release that carries out calls: of `driver_store`, on any store.

    `place` gets what Java prints, and is its home. artifact: `client` has the calls of `driver_client`.
    quick: Java starts fast and compiles little; what is to be as fast as Java can be says no.
    """

    def __init__(
        self,
        release: str,
        place: Path,
        name: str = "java",
        artifact: str = "store",
        *,
        quick: bool = True,
    ) -> None:
        self.release = release
        self._log = (place / f"{name}.java.log").open("w")
        command = [sys.executable, "-m", "tests.interop.driver"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.pid = self._process.pid
        self.stores = 0
        try:
            self.call(
                "start_jvm",
                release=release,
                artifact=artifact,
                classpath=[str(jar) for jar in jars(release, artifact)],
                quiet=str(quiet_logging()),
                home=str(place),
                quick=quick,
            )
        except BaseException:
            self.kill()
            raise

    def call(self, name: str, **arguments: Any) -> Any:
        """One request to the driver; JavaError with Java's own words when it fails."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018 - for the type checker
        watchdog = threading.Timer(SECONDS, self._process.kill)
        watchdog.start()
        try:
            stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            raise JavaError(
                f"{name}: the Java process ended with {self._process.wait()}, see {self._log.name}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(f"{name}: {answer['error']}")
        return answer["result"]

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process as a power cut would; the store is left as it lies."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class JavaStore:
    """A `DefaultMessageStore` on ``root``.

    >>> with JavaStore("5.3.3", root, mappedFileSizeCommitLog=65536) as store:
    ...     store.put("TopicTest", b"hello", queue_id=1, tags="TagA")
    ...     records = store.records()

    Leaving the block shuts the store down cleanly. ``settings`` are names of `MessageStoreConfig`;
    ``start=False`` only loads (recovers) the store; ``of_broker``: with the topics of its configuration.
    Its process is one of ``idle`` where there is any, and goes there when the store was shut down or could
    not be opened; without ``idle`` it ends with the store.
    """

    def __init__(
        self,
        release: str,
        root: Path,
        *,
        start: bool = True,
        idle: list[JavaProcess] | None = None,
        home: Path | None = None,
        of_broker: bool = False,
        **settings: object,
    ) -> None:
        self.release = release
        self.ended = False
        self._idle = idle
        name = f"{root.name}-{next(_NUMBERS)}"
        self._process = idle.pop() if idle else JavaProcess(release, home or root.parent, name)
        self.pid, self.call = self._process.pid, self._process.call
        self._process.stores += 1
        try:
            opened = self.call("open", root=str(root), start=start, settings=settings, of_broker=of_broker)
        except BaseException:
            self._end()
            raise
        self.loaded: bool = opened["loaded"]
        self.load_seconds: float = opened["seconds"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def put(self, topic: str, body: bytes = b"", **fields: Any) -> dict[str, Any]:
        """Append one message, fields as in `driver_store`; returns physical_offset, queue_offset, size."""
        result: dict[str, Any] = self.call("put", topic=topic, body=body.hex(), **fields)
        return result

    def put_batch(self, topic: str, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        """Append one client batch; each message has ``body`` and perhaps ``properties`` and ``flag``."""
        encoded = [{**message, "body": message["body"].hex()} for message in messages]
        result: dict[str, Any] = self.call("put_batch", topic=topic, messages=encoded, **fields)
        return result

    def compress(self, body: bytes, kind: str, level: int = 5) -> tuple[bytes, int]:
        """Java's own compression (ZLIB, LZ4, ZSTD): the bytes, and the sysFlag bits that go with them."""
        answer = self.call("compress", body=body.hex(), kind=kind, level=level)
        return bytes.fromhex(answer["body"]), answer["sys_flag"]

    def records(self) -> list[dict[str, Any]]:
        """Every record of the log, as Java's own decoder reads it."""
        result: list[dict[str, Any]] = self.call("records")["records"]
        return result

    def blanks(self) -> list[tuple[int, int]]:
        """Physical offset and length of every blank."""
        return [(offset, length) for offset, length in self.call("records")["blanks"]]

    def close(self) -> None:
        """Shut the store down cleanly."""
        if self.ended:
            return
        try:
            self.call("close")
        except BaseException:
            self.kill()
            raise
        self._end()

    def _end(self) -> None:
        """The process takes the next store, unless nobody wants it or it has had enough."""
        usable = self._process.alive and self._process.stores < MOST_STORES
        if self._idle is None or not usable:
            self.kill()
        else:
            self.ended = True
            self._idle.append(self._process)

    def kill(self) -> None:
        """End the process of a store that is not shut down; the store is left as it lies."""
        self.ended = True
        self._process.kill()
