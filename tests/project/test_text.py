"""What must not stand in the project's files."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_text() -> None:
    machine = [f"{place}/" for place in {str(ROOT), str(ROOT.parent), str(Path.home())} - SHARED_PLACES]
    assert len(texts()) > 1000
    for path in texts():
        text = path.read_text(encoding="utf-8")
        assert [word for word in (*machine, *REGISTRIES) if word in text] == [], path
        assert UNFINISHED.search(text) is None, path
        assert text.endswith("\n") or not text, path
        assert "\r" not in text, path


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
