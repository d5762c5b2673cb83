"""A headless Chromium over its debugging pipe: what a page does in a real browser, without a driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

_BECOMES = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""a process that becomes the browser, which reads from descriptor 3 and writes to 4"""


def find() -> str | None:
    """The browser of this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. troubles: what went to the console as an error, was thrown, or was fetched from elsewhere."""

    def __init__(self, sends: int, receives: int) -> None:
        self._out = os.fdopen(sends, "wb", buffering=0)
        self._in = os.fdopen(receives, "rb")
        self._number = 0
        self._left = b""
        self.troubles: list[str] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """Closes the pipe."""
        self._out.close()
        self._in.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            got = self._receive()
            if got.get("id") == self._number:
                assert "error" not in got, got["error"]
                return got["result"]
            self._note(got)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = os.read(self._in.fileno(), 1 << 16)
            assert read, "the browser has ended"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.troubles.append(json.dumps(found["exceptionDetails"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in {"error", "warning"}:
            self.troubles.append(found["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.troubles.append(json.dumps(found["args"]))
        elif method == "Network.requestWillBeSent" and not found["request"]["url"].startswith("file:"):
            self.troubles.append(found["request"]["url"])

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Loads a file at a width, to its end."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url=path.as_uri())
        while self.run("document.readyState") != "complete" or not self.run("location.href").startswith(
            "file:"
        ):
            pass

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """What is seen, as PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def paper(self) -> bytes:
        """The page as it prints, as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser for as long as it is used."""
    to_it, sends = os.pipe()
    receives, from_it = os.pipe()

    with tempfile.TemporaryDirectory(prefix="rmqtool-browser-", ignore_cleanup_errors=True) as profile:
        options = (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-pipe", "--disable-background-networking", f"--user-data-dir={profile}",
        )  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", _BECOMES, str(to_it), str(from_it), program, *options],
            pass_fds=(to_it, from_it), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        browser = None
        try:
            browser = Browser(sends, receives)
            yield browser
        finally:
            process.terminate()
            process.wait(30)
            if browser is not None:
                browser.close()
