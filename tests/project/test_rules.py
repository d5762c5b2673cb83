"""The list of the broker's rules in docs/architecture.md names what is there."""

from __future__ import annotations

import re

import pytest

from tests.project.files import ROOT

_ROW = re.compile(r"^\| (.+) \| `\w+#(\w+)` \| `([\w/]+\.py)` \|$", re.MULTILINE)
RULES = _ROW.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("rule", "method", "place"), RULES, ids=[rule for rule, _, _ in RULES])
def test_a_rule_stands_where_the_list_says(rule: str, method: str, place: str) -> None:
    path = ROOT / place if place.startswith("formats/") else ROOT / "rmqtool" / place
    assert f"#{method}" in path.read_text(encoding="utf-8")


def test_there_is_a_list() -> None:
    assert len(RULES) > 20
