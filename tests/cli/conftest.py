"""A command of the tests' own, so that the shell is tested whatever the real commands do."""

from __future__ import annotations

import pytest

from rmqtool.cli import commands
from rmqtool.cli.commands import Entry


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> str:
    """Registers the command `echo` and returns its name."""
    monkeypatch.setitem(commands.COMMANDS, "echo", Entry("tests.cli.echo_command", "Says what it was given."))
    return "echo"
