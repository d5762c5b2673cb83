"""The catalogue: every code is documented, no hint names a command that does not exist.

That each code is found, and on which damage, is asked in `test_mutators`.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from rmqtool.check.catalogue import CATALOGUE
from rmqtool.check.findings import Finding, finding
from rmqtool.cli.commands import COMMANDS
from tests.helpers import assert_page_is_current

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_findings_is_current() -> None:
    assert_page_is_current("findings_page.py")


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_an_entry(entry) -> None:
    assert re.fullmatch(r"(DIR|CL|CQ|BCQ|IDX|CMP|CP|TMR|CFG|X)(-[A-Z0-9]+)+", entry.code)
    assert f'id="{entry.anchor}"' in (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert entry.hint
    named = set(re.findall(r"rmqtool ([a-z-]+)", entry.hint + entry.sentence))
    assert named <= set(COMMANDS)
    facts = {field for _, field, _, _ in Formatter().parse(entry.sentence) if field}
    assert facts <= set(Finding.__dataclass_fields__)


def test_one_is_no_plural() -> None:
    said = {count: finding("CQ-DANGLING", found=count).message for count in (1, 2)}
    assert said[1] == "1 consume queue entry points to no record"
    assert said[2] == "2 consume queue entries in a row point to no record"
    for entry in CATALOGUE.values():
        one = entry.filled({name: 1 for _, name, _, _ in Formatter().parse(entry.of_many) if name})
        assert not re.match(r"1 (\w+ ){0,3}(entries|records|messages|keys|files)\b", one), one
