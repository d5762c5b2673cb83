"""What must not stand in the project's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project.files import ROOT, texts

REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "repo1." + "maven",
    "repo.maven" + ".apache",
    "npmjs" + ".com",
)
SHARED_PLACES = {"/", "/tmp", "/var/tmp", "/home", "/opt", "/srv", "/data"}
"""folders that exist on every machine: an example may name them even where the checkout lies in one"""
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK")) + r")\b")


@pytest.mark.parametrize("path", texts(), ids=lambda path: str(path.relative_to(ROOT)))
def test_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    machine = [f"{place}/" for place in {str(ROOT), str(ROOT.parent), str(Path.home())} - SHARED_PLACES]
    assert [word for word in (*machine, *REGISTRIES) if word in text] == []
    assert UNFINISHED.search(text) is None
    assert text.endswith("\n") or not text
    assert "\r" not in text


def test_top_level_is_what_the_readme_says() -> None:
    top = {path.relative_to(ROOT).parts[0] for path in texts()}
    fixed = {
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "rmqtool",
        "formats",
        "fixtures",
        "tests",
        "docs",
    }
    assert {name for name in top if not name.startswith(".")} == fixed


def test_changelog_has_the_version() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
