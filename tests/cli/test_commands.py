"""Promises that hold for every command, also those of later releases."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
import typer

from rmqtool.cli.commands import AREAS, COMMANDS, GROUPS, INTENDED, load_command
from rmqtool.cli.main import run


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_says_what_every_option_does(name: str) -> None:
    command = load_command(name)
    function = import_module(COMMANDS[name].module).command
    assert all(example.startswith(f"rmqtool {name}") for example in function.examples)
    assert function.examples
    for parameter in command.params:
        assert getattr(parameter, "help", None), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_fits_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = load_command(name)
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert run([*name.split(), "--help"]) == 0
    short = capsys.readouterr().out
    assert run([*name.split(), "--help-all"]) == 0
    full = capsys.readouterr().out
    assert all(option in short.split() or f"{option}," in short.split() for option in options)
    examples = import_module(COMMANDS[name].module).command.examples
    for parameter in command.params:
        assert " ".join(parameter.help.split()) in " ".join(full.split()), parameter.name
    for page in (short, full):
        assert all(len(line) <= 80 or line.strip() in examples for line in page.splitlines())
        assert page.index("Examples") < page.index("Options") if "Options" in page else True
    assert len(short.splitlines()) < 80


def test_the_list_of_commands_has_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    page = capsys.readouterr().out
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == page
    listed = {line.split()[0] for line in page.splitlines() if line.startswith("  ") and line[2] != " "}
    assert {name.split()[0] for name in COMMANDS} <= listed
    assert [page.index(f"\n{area}\n") for area in AREAS] == sorted(
        page.index(f"\n{area}\n") for area in AREAS
    )


def test_help_of_a_command_and_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["verify"], ["store", "put"], ["store"]):
        assert run(["help", *words]) == 0
        page = capsys.readouterr().out
        assert page.startswith(f"Usage: rmqtool {' '.join(words)} ")
        assert run([*words, "--help"]) == 0
        assert capsys.readouterr().out == page
    assert run(["help", "nothing"]) == 2
    capsys.readouterr()
    assert run(["version"]) == 0
    assert capsys.readouterr().out.startswith("rmqtool ")


@pytest.mark.parametrize("typed", INTENDED)
def test_what_people_type_leads_to_a_command(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed not in COMMANDS
    assert run([typed, "x"]) == 2
    known = INTENDED[typed] in COMMANDS or INTENDED[typed] in GROUPS
    assert (f"Did you mean '{INTENDED[typed]}'?" in capsys.readouterr().err) is known


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_the_line_of_the_list(name: str) -> None:
    function = import_module(COMMANDS[name].module).command
    assert inspect.getdoc(function).splitlines()[0] == COMMANDS[name].help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_common_options(name: str) -> None:
    options = {option for parameter in load_command(name).params for option in parameter.opts}
    assert {"--format", "--json", "--color", "--quiet", "--debug", "--tz", "--int64-as-string"} <= options


FURTHER = {
    "show": ["0"],
    "query-key": ["key"],
    "query-id": ["0" * 32],
    "query-offset": ["Topic", "0", "min"],
    "query-time": ["Topic", "0", "now"],
    "export": ["--to", "absent.raw"],
    "report": ["--output", "absent.html"],
    "sql": ["select 1"],
    "salvage": ["--output", "new"],
    "trace": ["key"],
    "assign": ["Topic", "--clients", "a"],
    "diff": ["absent"],
    "offsets merge": ["absent"],
    "offsets diff": ["absent"],
    "store put": ["Topic", "--body", "x"],
    "store get": ["Topic", "0"],
    "store topic": ["Topic"],
    "store group": ["Group"],
    "store commit": ["none"],
    "store rollback": ["none"],
    "store replicate": ["--listen", "0"],
    "pipeline export": ["--to", "absent"],
    "pipeline rebuild": ["--output", "absent"],
    "pipeline query-key": ["--key", "key"],
    "pipeline sql": ["select 1"],
    "pipeline stream": ["--to", "absent"],
}
"""what stands behind STORE"""
MAKES_IT = {"store init"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in MAKES_IT])
def test_path_that_does_not_exist_is_wrong_usage(
    name: str, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*name.split(), str(tmp_path / "absent"), *FURTHER.get(name, [])]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert "absent" in shown.err


def test_typer_is_the_one_that_carries_its_own_click() -> None:
    assert typer.core.TyperCommand.__mro__[1].__module__.startswith("typer.")
