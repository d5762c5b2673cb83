"""Screens of 80, 120 and 200 columns: no word is cut, no column is gone without being said."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqtool.output.text_style import cells
from tests.cli.screens import screen
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable

    import fixtures

WIDTHS = (80, 120, 200)
STORES = (
    "b533-full",
    pytest.param("v533-lmq", marks=pytest.mark.full),
    pytest.param("v498-edge", marks=pytest.mark.full),
)
LISTINGS = {
    "dump": (),
    "tail": ("-n", "5"),
    "stats": (),
    "stats --by topic,hour": (),
    "stats --by group": (),
    "stats --retention": (),
    "query-key": ("key-0",),
    "query-offset": ("TopicBasic", "0", "min", "-n", "5"),
    "query-time": ("TopicBasic", "0", "2020-01-01"),
}
PAGES = ("verify", "doctor", "recover", "info", "checkpoint show")
SNAPSHOTS = Path(__file__).with_name("snapshots")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2},?|[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?|in|s|[0-9.e-]+")


def asked(name: str, store: Path, *more: str) -> list[object]:
    command, *options = name.split()
    words = [command, *options] if command == "checkpoint" else [command]
    return [*words, store, *more, *(options if command != "checkpoint" else ())]


def overlong(shown: str, width: int) -> list[str]:
    """Lines that the terminal would break, but for commands and places to copy, and words no line holds."""
    lines = (line for line in shown.splitlines() if cells(line) > width)
    return [line for line in lines if not re.search(r"(^| )(rmqtool |/)", line) and " " in line.strip("→ ")]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, golden: Callable[[str], fixtures.Golden]) -> Path:
    return golden(request.param).path


@pytest.mark.share
@pytest.mark.parametrize("name", LISTINGS)
def test_listings_say_every_column_they_leave_out(store: Path, name: str) -> None:
    words = [*asked(name, store, *LISTINGS[name]), "--tz", "UTC"]
    piped = rmq(*words).stdout.splitlines()
    headings = re.split(r"  +", piped[0].strip()) if piped else []
    shown_before: set[str] = set()
    for width in WIDTHS:
        _, shown = screen(width, *words)
        assert overlong(shown, width) == []
        lines = shown.splitlines()
        at = (
            next((n for n, line in enumerate(lines) if line.split()[:1] == headings[0].split()[:1]), 0)
            if headings
            else 0
        )
        heads = set(re.split(r"  +", lines[at].strip())) if headings else set()
        said = " ".join(lines[:at])
        assert all(one in heads or one in said for one in headings)
        assert shown_before <= heads  # more room shows no less
        shown_before = heads


@pytest.mark.share
@pytest.mark.parametrize("name", PAGES)
def test_pages_break_between_words_only(store: Path, name: str) -> None:
    words = [*asked(name, store), "--tz", "UTC"]
    piped = rmq(*words)
    known = set(f"{piped.stdout} {piped.stderr}".split())
    for width in WIDTHS:
        code, shown = screen(width, *words, lines=500)
        assert code == piped.exit_code
        assert overlong(shown, width) == []
        cut = {word for word in shown.split() if word not in known and "…" not in word and word != "→"}
        said = re.findall(r"left out at .*", shown)
        cut -= set(" ".join(said).split())
        assert {word for word in cut if not _TIME.fullmatch(word)} <= KNOWN | _copied(shown, store)


KNOWN = {"times", "in", "UTC", "at", "offset"}
"""words that only a terminal has: the zone above a table, places in blocks"""


def _copied(shown: str, store: Path) -> set[str]:
    """Words of commands to copy, and of places that `verify` says without columns."""
    commands = re.findall(r"rmqtool [^\n]*(?:\n    [^\n]*)*", shown)
    places = re.findall(r"^(?:error|warning|note) .*(?:\n {8}.*)*", shown, re.MULTILINE)
    return set(" ".join([*commands, *places, str(store)]).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_golden_screens(
    golden: Callable[[str], fixtures.Golden], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Set RMQTOOL_UPDATE to write the screens again, then read what has changed."""
    monkeypatch.chdir(golden("b533-full").path.parent)
    parts = []
    for line in SHOWN:
        _, shown = screen(width, *line.split(), "--tz", "UTC")
        parts.append(f"$ rmqtool {line}\n{shown}")
    text = re.sub(r"\bin [0-9.e-]+ s\b", "in 0 s", "\n".join(parts))
    place = SNAPSHOTS / f"screens-{width}.txt"
    if "RMQTOOL_UPDATE" in os.environ:
        place.write_text(text)
    assert text == place.read_text()


SHOWN = (
    "dump store --limit 6",
    "dump store --limit 2 --body",
    "verify store -q",
    "tail store -n 3",
    "stats store --plot -q",
    "stats store --by hour --plot -q",
    "query-key store delay-1h",
    "query-offset store TopicBasic 0 min -n 2",
    "checkpoint show store",
    "map store",
    "retry store",
    "dlq store",
    "half store --at 2026-11-21T10:00:00Z",
    "trace store retry-dead",
    "offsets audit store",
    "config check store",
)
