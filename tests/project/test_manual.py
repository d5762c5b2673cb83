"""Manual pages: made of the commands as they are, one each, and shown as they are meant."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rmqtool.cli.commands import COMMANDS, load_command
from rmqtool.cli.manual import escape, pages
from rmqtool.errors import ExitCode
from tests.project.files import ROOT

FOLDER = ROOT / "docs" / "man"
MACRO = re.compile(r"\.(TH|SH|SS|PP|TP|nf|fi|ad l|nh)( .*)?")
NEEDS_GROFF = pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")


def shown(*paths: Path) -> str:
    """What groff draws, with every warning an error."""
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stderr == ""
    return done.stdout


def test_pages_are_current() -> None:
    """`python -m rmqtool.cli.manual docs/man` makes them again."""
    assert {path.name: path.read_text(encoding="ascii") for path in FOLDER.iterdir()} == pages()


def test_every_command_and_exit_code_has_its_place() -> None:
    made = pages()
    program = made.pop("rmqtool.1")
    assert set(made) == {f"rmqtool-{name.replace(' ', '-')}.1" for name in COMMANDS}
    assert all(f"\\fB{escape(name.removesuffix('.1'))}\\fR(1)" in program for name in made)
    assert all(f"\n.TP\n\\fB{code.value}\\fR\n" in program for code in ExitCode)
    for name in COMMANDS:
        page = made[f"rmqtool-{name.replace(' ', '-')}.1"]
        for item in load_command(name).params:
            assert all(f"\\fB{escape(one)}\\fR" in page for one in item.opts if one.startswith("-"))


def test_no_line_of_text_is_taken_for_a_request() -> None:
    lines = [line for page in pages().values() for line in page.splitlines()]
    assert all(MACRO.fullmatch(line) for line in lines if line[:1] in {".", "'"})
    assert not [line for line in lines if not line]


@NEEDS_GROFF
def test_pages_are_drawn_without_warnings() -> None:
    text = shown(*sorted(FOLDER.iterdir()))
    assert all(load_command(name).help.split()[0] in text for name in COMMANDS)
    assert "rmqtool dump /data/store --topic 'Order*' --from -2h --body" in text


@NEEDS_GROFF
@pytest.mark.parametrize("text", [".so /etc/motd", "'br", r"a\fBb\n\\e", "-`^~\"'", "…–× é"])
def test_text_is_drawn_as_it_is(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.1"
    page.write_text(f'.TH X 1 "" "x" "x"\n.SH NAME\n.nf\n{escape(text)}\n', encoding="ascii")
    assert text in shown(page)
