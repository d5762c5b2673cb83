"""The catalogue of consequences: documented, and every known behaviour is in it."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

import pytest

from rmqtool.check.catalogue.numbered import filled, of_many
from rmqtool.cli.commands import COMMANDS
from rmqtool.recovery.consequences.behaviours import BEHAVIOURS
from rmqtool.recovery.consequences.catalogue import CATALOGUE
from rmqtool.recovery.consequences.consequence import consequence
from tests.helpers import assert_page_is_current

if TYPE_CHECKING:
    from rmqtool.recovery.consequences.behaviours import Behaviour
    from rmqtool.recovery.consequences.entry import Entry

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    assert_page_is_current("consequences_page.py")


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_an_entry(entry: Entry) -> None:
    assert re.fullmatch(r"DR(-[A-Z0-9]+)+", entry.code)
    assert f'id="{entry.anchor}"' in (ROOT / "docs/consequences.md").read_text(encoding="utf-8")
    assert set(re.findall(r"rmqtool ([a-z-]+)", entry.hint + entry.sentence)) <= set(COMMANDS)
    assert all(name is None or name.isidentifier() for _, name, _, _ in Formatter().parse(entry.sentence))
    assert entry.releases == "every" or re.match(r"before|every;|\d", entry.releases)


@pytest.mark.parametrize("row", BEHAVIOURS, ids=lambda row: row.id)
def test_a_behaviour_has_codes_or_a_reason(row: Behaviour) -> None:
    assert set(row.codes) <= set(CATALOGUE)
    assert row.codes or row.why


def test_every_behaviour_and_every_code_has_its_place() -> None:
    named = [row.id for row in BEHAVIOURS]
    wanted = [f"start-{n}" for n in range(1, 13)] + [f"run-{n}" for n in range(1, 4)]
    wanted += [f"seen-{n}" for n in range(1, 21)]
    assert [name for name in named if not name.startswith("more-")] == wanted
    assert {code for row in BEHAVIOURS for code in row.codes} == set(CATALOGUE)


def test_zero_is_not_said() -> None:
    built = (
        "816 messages are handed to queues and index during the start",
        ", and 2 consume queue entries are built",
    )
    assert consequence("DR-DISPATCHED", messages=816, units=0).message == built[0]
    assert consequence("DR-DISPATCHED", messages=816, units=2).message == "".join(built)
    hidden = consequence("DR-FILLER-HIDES", messages=0).message
    assert hidden == "a filler stands where a record was: recovery and dispatching miss it"
    for entry in CATALOGUE.values():
        names = {name for _, name, _, _ in Formatter().parse(of_many(entry.sentence)) if name}
        assert "[" not in of_many(entry.sentence)
        assert "[" not in filled(entry.sentence, dict.fromkeys(names, 1))


def test_one_is_no_plural() -> None:
    assert consequence("DR-INDEX-DROPPED", count=1, offset=0).message.startswith("1 index file is deleted")
    assert consequence("DR-INDEX-DROPPED", count=2, offset=0).message.startswith("2 index files are deleted")
    for entry in CATALOGUE.values():
        names = {name for _, name, _, _ in Formatter().parse(of_many(entry.sentence)) if name}
        one = filled(entry.sentence, dict.fromkeys(names, 1))
        plural = r"\b1 (\w+ ){0,3}(entries|records|messages|ranges|timers|topics|files)\b"
        assert not re.search(plural, one), one
