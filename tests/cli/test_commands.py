"""Promises that hold for every command, also those of later releases."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
import typer

from rmqtool.cli.commands import COMMANDS, load_command
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
    "sql": ["select 1"],
    "salvage": ["--output", "new"],
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
