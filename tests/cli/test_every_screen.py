"""Every command at 80, 120 and 200 columns over three stores: what is cut or dropped is said."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures.damage import damage_case
from fixtures.stores import healthy_store
from rmqtool.cli.commands import COMMANDS
from tests.cli.screens import screen
from tests.cli.test_screens import WIDTHS, overlong
from tests.helpers import rmq
from tests.recovery.corpus import damaged_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

DAMAGED = "v498-block-head-zero-mid-abort"
ASKED: dict[str, list[str]] = {
    "info": ["STORE"], "info copied": ["STORE", "--what-to-copy"],
    "dump": ["STORE"], "dump bodies": ["STORE", "--limit", "2", "--body"], "dump config": ["STORE/config"],
    "dump index": ["STORE/index", "--limit", "9"],
    "verify": ["STORE"], "doctor": ["STORE"], "doctor full": ["STORE", "--full"],
    "show": ["STORE", "0"],
    "query-key": ["STORE", "key-0"], "query-id": ["STORE", "7F000001000078BF0000000000000000"],
    "query-offset": ["STORE", "TopicBasic", "0", "min", "-n", "5"],
    "query-time": ["STORE", "TopicBasic", "0", "2020-01-01"],
    "tail": ["STORE", "-n", "5"],
    "stats": ["STORE"], "stats topics": ["STORE", "--by", "topic,hour"],
    "stats groups": ["STORE", "--by", "group"],
    "stats retention": ["STORE", "--retention"], "stats plot": ["STORE", "--plot", "-q"],
    "map": ["STORE"], "report": ["STORE", "--output", "NEW/a.html"],
    "export": ["STORE", "--to", "NEW/a.ndjson"], "sql": ["STORE", "select * from messages limit 3"],
    "salvage": ["STORE", "--output", "NEW/salvaged"],
    "recover": ["STORE"], "recover broker": ["STORE", "--policy", "broker"],
    "recover applied": ["STORE", "--output", "NEW/made", "--apply"],
    "explain": ["LINES"], "rebuild": ["STORE"], "undo": ["NEW/absent"],
    "checkpoint show": ["STORE"], "checkpoint set": ["STORE"],
    "delayed": ["STORE"], "half": ["STORE", "--at", "2026-11-21T10:00:00Z"],
    "retry": ["STORE"], "dlq": ["STORE"], "trace": ["STORE", "retry-dead"],
    "assign": ["STORE", "TopicBasic", "--clients", "a,b", "--join", "c"], "diff": ["STORE", "STORE"],
    "offsets audit": ["STORE"], "offsets clamp": ["STORE"], "offsets merge": ["STORE", "STORE"],
    "offsets diff": ["STORE", "STORE"], "config check": ["STORE"], "config salvage": ["STORE"],
    "schema": [],
    "store init": ["NEW/store"], "store put": ["STORE", "TopicBasic", "--body", "x"],
    "store get": ["STORE", "TopicBasic", "0"], "store topic": ["STORE", "TopicBasic"],
    "store group": ["STORE", "CG_basic"], "store groups": ["STORE"], "store commit": ["STORE", "none"],
    "store rollback": ["STORE", "none"], "store expire": ["STORE"], "store status": ["STORE"],
    "store load": ["STORE", "NEW/absent.replay"],
}  # fmt: skip
ELSEWHERE = {"store bench", "store replicate"}
"""what they print are measurements, and what goes on until it is stopped; the pipeline needs Spark"""
IN_CI = ("delayed", "retry", "offsets audit", "config check", "assign", "store groups", "stats retention")
"""the rest: `-m full`"""
DRAWN = {"map", "stats plot"}
"""pictures, as wide as the terminal: their lines are others at each width"""
OTHER_LAYOUT = {
    "verify": {"severity", "code", "path", "position", "offset", "message", "hint", "STORE", "OFFSET"},
    "checkpoint show": {"field", "verdict"},
    "config check": {"detail"},
}
"""headings of the table in a pipe that a terminal does without: it has blocks, with places to copy"""
_MOVES = re.compile(r"\d{4}-\d\d-\d\d\S*|\S*\d\d:\d\d:\d\d\S*|[\d,.e+-]+s?|[0-9a-f]{6,}\S*|[A-F0-9]{16,}")
"""times, which are shorter on a terminal, and numbers that differ from run to run"""
_SAID = re.compile(
    r"^(?:left out at \d+ columns: .*(?:\n[^\n]*,[^\n]*)*|times in .*|\d{4}-\d\d-\d\d, .*)$", re.MULTILINE
)
_COPIED = re.compile(r"rmqtool .*(?:\n    .*)*")


def stores(golden: Callable[[str], fixtures.Golden], name: str, place: Path) -> None:
    """A broker's store, one with long names and every kind of file, a damaged one."""
    if name == "golden":
        shutil.copytree(golden("b533-full").path, place)
    elif name == "handmade":
        healthy_store().write(place)
    else:
        with damaged_store(damage_case(DAMAGED)) as store:
            shutil.copytree(store.root, place)


def words_of(text: str) -> set[str]:
    words = (one.strip("(),;:│|→█") for one in text.split())
    return {one for one in words if one and not _MOVES.fullmatch(one)}


def _shortened(shown: str, whole: str) -> bool:
    head, _, tail = shown.partition("…")
    return re.search(f"{re.escape(head)}.*{re.escape(tail)}", whole) is not None


CASES = [
    pytest.param(
        store, name,
        marks=() if (store, name) in {("golden", one) for one in IN_CI} else pytest.mark.full,
        id=f"{store}-{name}",
    )
    for store in ("golden", "handmade", "damaged")
    for name in ASKED
]  # fmt: skip


def test_every_command_is_asked() -> None:
    shown = {name for name in COMMANDS if not name.startswith("pipeline")} - ELSEWHERE
    assert {next(one for one in COMMANDS if f"{name} ".startswith(f"{one} ")) for name in ASKED} == shown


@pytest.mark.share
@pytest.mark.parametrize(("which", "name"), CASES)
def test_nothing_is_cut_or_dropped_silently(
    which: str, name: str, golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    lines = tmp_path / "broker.log"
    lines.write_text("2026-11-21 09:24:16 ERROR ReputMessageService - queryMsg exception\n")
    command = next(one for one in COMMANDS if f"{name} ".startswith(f"{one} "))

    def asked(number: int) -> list[str]:
        at = tmp_path / str(number)
        at.mkdir()
        stores(golden, which, at / "store")
        filled = (
            one.replace("STORE", str(at / "store")).replace("NEW", str(at)).replace("LINES", str(lines))
            for one in ASKED[name]
        )
        return [*command.split(), *filled, "--tz", "UTC"]

    def of_any_run(text: str, number: int) -> str:
        return text.replace(f"{tmp_path}/{number}", "PLACE")

    piped = rmq(*asked(0))
    whole = of_any_run(f"{piped.stdout}\n{piped.stderr}", 0)
    known = words_of(whole)
    for width in WIDTHS:
        code, raw = screen(width, *asked(width), lines=1000)
        shown = of_any_run(raw, width)
        assert code == piped.exit_code, shown
        assert [line for line in overlong(raw, width) if not _of_one_word(line)] == []
        seen, said = words_of(shown), words_of(" ".join(_SAID.findall(shown)))
        parts = {one for one in seen if "…" in one}
        copied = words_of(" ".join(_COPIED.findall(shown)))
        assert all(_shortened(one, piped.stdout + piped.stderr) for one in parts), (width, shown)
        if name in DRAWN:
            continue
        new = {one for one in seen - known - parts - said - copied if one not in whole}
        assert new == set(), (width, shown)
        gone = known - seen - OTHER_LAYOUT.get(name, set())
        if said:
            gone &= words_of(whole.splitlines()[0])
        assert {one for one in gone if not any(_hides(part, one) for part in parts)} == set(), (
            width,
            shown,
        )


def _hides(part: str, word: str) -> bool:
    """Whether a word went where a value lost its middle, which may be a list of words."""
    head, _, tail = part.partition("…")
    return bool(head and word.startswith(head)) or bool(tail and word.endswith(tail))


def _of_one_word(line: str) -> bool:
    """An error, which is one line, or a word that no line holds (a body as base64)."""
    return line.startswith("rmqtool: ") or max(map(len, line.split())) > 60
