"""The catalogue: every code is documented, no hint names a command that does not exist.

That each code is found, and on which damage, is asked in `test_mutators`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from string import Formatter

import pytest

from rmqtool.check.catalogue import CATALOGUE
from rmqtool.check.findings import Finding
from rmqtool.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_findings_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "docs/findings_page.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_an_entry(entry) -> None:
    assert re.fullmatch(r"(DIR|CL|CQ|BCQ|IDX|CP|CFG|X)(-[A-Z0-9]+)+", entry.code)
    assert f'id="{entry.anchor}"' in (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert entry.hint
    named = set(re.findall(r"rmqtool ([a-z-]+)", entry.hint + entry.sentence))
    assert named <= set(COMMANDS)
    facts = {field for _, field, _, _ in Formatter().parse(entry.sentence) if field}
    assert facts <= set(Finding.__dataclass_fields__)
