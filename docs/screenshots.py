"""Runs the commands that the documentation shows, and puts their real output into the pages.

    python docs/screenshots.py            rewrite the output below every `$ ` line, and the pictures
    python docs/screenshots.py --check    exit 1 when a page shows something else
    python docs/screenshots.py --check --no-spark    the same, but for commands on Spark

Commands run in bash, on a terminal of 80 columns, in UTC, in a directory of their own with the stores
under fixtures/.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
STORE = "fixtures/golden/b533-full/store"
PAGES = ("README.md",)
PICTURES = {
    "docs/img/info.svg": f"rmqtool info {STORE} | head -40",
    "docs/img/dump.svg": f"rmqtool dump {STORE} --limit 12",
    "docs/img/show.svg": f"rmqtool show {STORE} 0",
}
PIPELINE = "$ rmqtool pipeline"
SPARK = "--no-spark" not in sys.argv[1:] and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output(command: str, place: str, **extra: str) -> str:
    """What a person sees who is in the directory `place`, here called /data: standard output and error."""
    settings = {"COLUMNS": "80", "TZ": "UTC", "TERM": "dumb", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    main, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=place,
        env={**os.environ, **settings, "PATH": path, **extra},
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=screen,
    ):
        os.close(screen)
        shown = b"".join(iter(partial(_read, main), b""))
    os.close(main)
    return shown.decode().replace("\r\n", "\n").replace(f"{place}/", "/data/")


def _read(terminal: int) -> bytes:
    """What was written to a terminal; nothing when all who could write are gone."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def refreshed(block: re.Match[str], place: str) -> str:
    """A console block with the output that its commands have now; those on Spark need Java."""
    if PIPELINE in block[1] and not SPARK:
        print(f"left as it is, without Spark: {block[1].splitlines()[0]}")
        return block[0]
    commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
    return "```console\n" + "".join(f"{line}\n{output(line[2:], place)}" for line in commands) + "```"


def picture(command: str, path: Path, place: str) -> None:
    """Draws a command and its coloured output."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.assemble(("$ ", "bold green"), command))
    shown = output(command.replace(STORE, f"{STORE} --color always", 1), place, NO_COLOR="")
    console.print(Text.from_ansi(shown.rstrip("\n")))
    drawing = console.export_svg(title="rmqtool", unique_id=path.stem)
    # No fonts from the network: the viewer's own monospaced font will do.
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL) + "\n", encoding="utf-8")


def main() -> int:
    """Refreshes or checks; 1 when a page was not current."""
    check = "--check" in sys.argv[1:]
    stale = 0
    with tempfile.TemporaryDirectory(prefix="rmqtool-docs-") as place:
        Path(place, "fixtures").symlink_to(ROOT / "fixtures")
        for name in PAGES:
            page = ROOT / name
            text = page.read_text(encoding="utf-8")
            current = BLOCK.sub(partial(refreshed, place=place), text)
            if current != text:
                stale += 1
                print(f"{name}: {'not current' if check else 'refreshed'}")
                if not check:
                    page.write_text(current, encoding="utf-8")
        if not check:
            for name, command in PICTURES.items():
                picture(command, ROOT / name, place)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
