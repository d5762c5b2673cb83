"""Runs the commands that the cookbook shows, and puts their real output into its pages.

    python docs/cookbook_pages.py            rewrite the output below every `$ ` line
    python docs/cookbook_pages.py --check    exit 1, and the difference, when a page shows something else

All in this process, on a terminal of 80 columns, in UTC, in a directory of its own. A comment in front of a
block makes the stores that it and those after it are about:

    <!-- store: NAME … -->      the handmade store as `store`, with these damages (fixtures/mutators) in it
    <!-- replica: NAME … -->    another one as `replica`
    <!-- golden: NAME -->       a store of a real broker as `store`

"console 12" at the head of a block shows the first 12 lines of each output, and that there are more.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from difflib import unified_diff
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixtures import open_golden
from fixtures.mutators import MUTATORS
from fixtures.stores import healthy_store
from tests.cli.screens import screen

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "cookbook"
PART = re.compile(
    r"^<!-- (?P<kind>store|replica|golden): (?P<names>[\w -]*?) ?-->$"
    r"|^```console(?: (?P<most>\d+))?\n(?P<lines>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_DAMAGES = {one.name: one for one in MUTATORS}
_MODIFIED = 1_700_000_040
_BLOCKS = 100 << 18  # of 4 KiB
_DISK = SimpleNamespace(
    f_frsize=4096, f_bsize=4096, f_blocks=_BLOCKS, f_bfree=_BLOCKS // 2, f_bavail=_BLOCKS // 2
)


def make(kind: str, names: list[str], place: Path) -> None:
    """The store that a comment asks for, in the place of all that was there before, but for a replica."""
    root = place / ("replica" if kind == "replica" else "store")
    for old in place.iterdir() if kind != "replica" else ():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    if kind == "golden":
        with tempfile.TemporaryDirectory(dir=place) as unpacked:
            open_golden(names[0], Path(unpacked) / "golden").path.rename(root)
        return
    store = healthy_store().write(root)
    for name in names:
        _DAMAGES[name].apply(store)
    for path in root.rglob("*"):
        os.utime(path, (_MODIFIED, _MODIFIED), follow_symlinks=False)


def output(command: str, place: Path) -> str:
    """What a person sees who is in that directory."""
    words = shlex.split(command)
    if words[0] == "rmqtool":
        return screen(80, *words[1:])[1].replace(f"{place}/", "/data/")
    done = subprocess.run(
        words, cwd=place, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout


def refreshed(part: re.Match[str], place: Path) -> str:
    """A block with the output that its commands have now."""
    if part["kind"]:
        make(part["kind"], part["names"].split(), place)
        return part[0]
    blocks = []
    for command in (line for line in part["lines"].splitlines() if line.startswith("$ ")):
        lines = output(command[2:], place).splitlines()
        most = int(part["most"] or len(lines))
        more = ["…"] if len(lines) > most else []
        blocks.append("\n".join([command, *lines[:most], *more]) + "\n")
    return f"```console{' ' + part['most'] if part['most'] else ''}\n{''.join(blocks)}```"


def main() -> int:
    """Refreshes or checks; 1 when a page was not current."""
    check = "--check" in sys.argv[1:]
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    stale = 0
    for page in sorted(PAGES.glob("*.md")):
        if named and page.stem not in named:
            continue
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="rmqtool-cookbook-") as place:
            os.chdir(place)
            current = PART.sub(partial(refreshed, place=Path(place)), text)
            os.chdir(ROOT)
        if current != text:
            stale += 1
            print(f"{page.name}: {'not current' if check else 'refreshed'}")
            if check:
                lines = unified_diff(
                    text.splitlines(), current.splitlines(), "the page", "now", n=1, lineterm=""
                )
                print(*lines, sep="\n")
            else:
                page.write_text(current, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    os.environ |= {"TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    time.tzset()
    took = mock.patch("rmqtool.check.verify.round", return_value=0.1, create=True)  # seconds of `verify`
    with mock.patch("os.statvfs", return_value=_DISK), took:
        sys.exit(main())
