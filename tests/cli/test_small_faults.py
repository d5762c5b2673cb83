"""Words that would mislead: help, the zone's name, what --commitlog takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rmqtool.cli.commands import COMMANDS, load_command
from rmqtool.output.times import zone_of
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Mars/Base", "UTC (TZ=Mars/Base is not a valid time zone)"),
        (":Mars/Base", "UTC (TZ=Mars/Base is not a valid time zone)"),
        ("", "UTC"), ("UTC", "UTC"), ("CST-8", "CST-8"), ("<+08>-8", "<+08>-8"), (":UTC", "UTC"),
        ("/nowhere", "UTC (TZ=/nowhere is not a valid time zone)"),
    ],
)  # fmt: skip
def test_the_name_of_the_local_zone(monkeypatch: pytest.MonkeyPatch, given: str, name: str) -> None:
    monkeypatch.setenv("TZ", given)
    assert zone_of("local").name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_take_no_value(name: str) -> None:
    shown = rmq(*name.split(), "--help").stdout
    assert "<bool>" not in shown
    assert "--json" in shown


def test_the_program_s_own_flags_take_no_value() -> None:
    assert "<bool>" not in rmq("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_hint_names_the_command(name: str) -> None:
    option = "--tz"
    assert option in {one for parameter in load_command(name).params for one in parameter.opts}
    result = rmq(*name.split(), option)
    assert result.exit_code == 2
    assert f"'{option}' requires an argument" in result.stderr
    assert f"(see 'rmqtool {name} --help')" in result.stderr


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("checkpoint", "is a file"), ("index", "holds index files"),
        ("consumequeue", "holds consumequeue files"),
        ("nothing", "no such directory"), ("config", "no commit log"),
        ("index/20261121092416581", "is a file"),
    ],
)  # fmt: skip
def test_what_is_no_commitlog_root(golden: Any, place: str, problem: str) -> None:
    store = golden("b533-full").path
    for verb in (("info",), ("dump",), ("verify",), ("show", "0")):
        result = rmq(verb[0], store, *verb[1:], "--commitlog", store / place)
        assert_one_line(result, 2)
        assert problem in result.stderr


@pytest.mark.parametrize("place", ["checkpoint", "index", "commitlog/00000000000000000000"])
def test_a_part_of_a_store_has_no_further_roots(golden: Any, tmp_path: Path, place: str) -> None:
    result = rmq("dump", golden("b533-full").path / place, "--commitlog", tmp_path)
    assert_one_line(result, 2)
    assert "--commitlog adds roots" in result.stderr


def test_an_empty_root_may_be_added(golden: Any, tmp_path: Path) -> None:
    assert rmq("dump", golden("b533-full").path, "--commitlog", tmp_path, "--limit", 1).exit_code == 0
