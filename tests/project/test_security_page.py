"""Every promise of docs/security.md names the tests that hold it, and they exist."""

from __future__ import annotations

import re

import pytest

from tests.project.files import ROOT

LINES = [
    line for line in (ROOT / "docs" / "security.md").read_text("utf-8").splitlines() if line.startswith("- ")
]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("line", LINES)
def test_a_promise_names_tests_that_exist(line: str) -> None:
    found = TEST.findall(line)
    assert found, "names no test"
    for path, name in found:
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), f"{path} has no {name}"
