"""The documentation is true: links lead somewhere, commands run and print what is shown."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from rmqtool.cli.commands import ABOUT, COMMANDS, GROUPS, load_command
from rmqtool.cli.reference import reference
from tests.helpers import assert_page_is_current
from tests.project.files import ROOT, project_files

PAGES = [
    path for path in project_files() if path.suffix == ".md" and not path.is_relative_to(ROOT / "fixtures")
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|(?<!from)[\s`/])rmqtool ([a-z][a-z-]*)((?: [^`|\n]*)?)")
IN_GROUP = re.compile(r" ([a-z][a-z-]*)(.*)")


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    own = set(re.findall(r'<a id="([^"]+)"', text))
    return own | {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        place = page if not name else (page.parent / name)
        assert place.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(place), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_speak_only_of_commands_and_options_that_exist(page: Path) -> None:
    for first, words in COMMAND.findall(page.read_text(encoding="utf-8")):
        if first in ABOUT:
            continue
        name, rest = (first, words) if first not in GROUPS else member(first, words)
        assert name in COMMANDS, f"{page.name}: rmqtool {name}"
        options = {option for parameter in load_command(name).params for option in parameter.opts} | {
            "--help",
            "--help-all",
        }
        used = {word.split("=")[0] for word in rest.split() if word.startswith("--")}
        assert {word.rstrip(",.;:)") for word in used} <= options, f"{page.name}: rmqtool {name}{rest}"


def member(group: str, words: str) -> tuple[str, str]:
    """The command of a group that is spoken of; the group alone stands for its first."""
    found = IN_GROUP.fullmatch(words)
    name = f"{group} {found[1]}" if found else group
    if found and name in COMMANDS:
        return name, found[2]
    return next(one for one in COMMANDS if one.startswith(f"{group} ")), ""


def test_command_reference_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("options", [("--no-spark",), pytest.param((), marks=pytest.mark.full)])
def test_shown_output_is_what_the_commands_print(options: tuple[str, ...]) -> None:
    """What is shown of Spark is in the usual run too: `tests/pipeline/test_readme.py`."""
    assert_page_is_current("screenshots.py", *options)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_help_parse(name: str) -> None:
    for example in import_module(COMMANDS[name].module).command.examples:
        words = shlex.split(example.split(" | ")[0].split(" > ")[0])
        words = words[: words.index("<")] if "<" in words else words
        named = ["rmqtool", *name.split()]
        assert words[: len(named)] == named
        load_command(name).make_context(name, words[len(named) :]).close()


def test_ci_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "exec python3 tests/run.py" in script
    assert "python3 tests/run.py" in (ROOT / "README.md").read_text()
