"""The cookbook: a page for every incident, in the index, and each shows what its commands print."""

from __future__ import annotations

import re

from tests.helpers import assert_page_is_current
from tests.project.files import ROOT

PAGES = ROOT / "docs" / "cookbook"
INDEX = (PAGES / "README.md").read_text(encoding="utf-8")


def test_pages_show_what_their_commands_print() -> None:
    assert_page_is_current("cookbook_pages.py")


def test_every_incident_has_a_page_and_every_page_an_incident() -> None:
    rows = re.findall(r"^\| (F\d\d) \| .+ \| \[.+\]\((.+\.md)\) \|$", INDEX, re.MULTILINE)
    assert [number for number, _ in rows] == [f"F{number:02}" for number in range(1, 48)]
    assert {page for _, page in rows} == {page.name for page in PAGES.glob("*.md")} - {"README.md"}


def test_every_page_has_a_symptom_in_the_index() -> None:
    first = INDEX.split("## By a line of the log")[0]
    for page in PAGES.glob("*.md"):
        assert page == PAGES / "README.md" or f"({page.name})" in first
