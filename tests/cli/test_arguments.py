"""How words on the command line are distinguished."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from rmqtool.cli.arguments import BODY_FORMS, split_arguments
from rmqtool.cli.filters import BodyOptions
from rmqtool.cli.main import run

OPTIONS = {"--limit": True, "-n": True, "--json": False, "-q": False, "-f": False, "--body": True}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("store -2h", "-- store -2h"),
        ("-k1 store --json", "--json -- -k1 store"),
        ("store --limit -5 -", "--limit -5 -- store -"),
        ("store -n 5 -2h", "-n 5 -- store -2h"),
        ("store -n5 -qf", "-n5 -qf -- store"),
        ("store -qn 5", "-qn 5 -- store"),
        ("store -qx", "-- store -qx"),
        ("store --nope x", "--nope -- store x"),
        ("--limit=5 store", "--limit=5 -- store"),
        ("-- -q --json", "-- -q --json"),
        ("--body store", "--body auto -- store"),
        ("--body hex store", "--body hex -- store"),
        ("store --body", "--body auto -- store"),
        ("store --limit", "--limit"),
    ],
)
def test_options_go_before_positionals(words: str, expected: str) -> None:
    assert split_arguments(words.split(), OPTIONS, {"--body"}) == expected.split()


def test_an_option_of_the_same_name_may_take_text() -> None:
    assert split_arguments(["--body", "-x", "store"], OPTIONS, ()) == ["--body", "-x", "--", "store"]


def test_dashed_positional_and_options_reach_the_command(
    echo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [
        echo,
        "-k1",
        "--format",
        "raw",
        "--from",
        "-2h",
        "--queue",
        "3",
        "--queue",
        "0x10",
        "--body",
        "-qj2",
    ]
    argv += ["--max-read-rate", "1.5MB/s", "--redact", "keys,body", "--property", "A=b=c", "--limit", "7"]
    assert run(argv) == 0
    place, wanted, reading = capsys.readouterr().out.splitlines()
    assert place == "-k1"
    assert "queues=frozenset({16, 3})" in wanted
    assert f"store_from={1_000_000_000_000 - 7_200_000}" in wanted
    assert "properties=(('A', 'b=c'),)" in wanted
    assert "limit=7" in wanted
    assert " 2 1500000 " in reading
    assert "body='auto'" in reading
    assert reading.endswith("['body', 'keys']")


def test_store_from_environment_or_configuration(
    echo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.delenv("RMQTOOL_STORE", raising=False)
    assert run([echo, "--format", "raw"]) == 2
    config = tmp_path / "broker.conf"
    config.write_text("brokerName=a\nstorePathRootDir = /data/from config\n")
    capsys.readouterr()
    assert run([echo, "-", "--format", "raw", "--store-config", str(config)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "/data/from config"
    monkeypatch.setenv("RMQTOOL_STORE", "/data/from environment")
    assert run([echo, "--format", "raw", "--store-config", str(config)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "/data/from environment"
    assert run([echo, "given", "--format", "raw"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "given"
    monkeypatch.delenv("RMQTOOL_STORE")
    config.write_text("brokerName=a\n")
    assert run([echo, "-", "--format", "raw", "--store-config", str(config)]) == 2
    assert run([echo, "-", "--format", "raw", "--store-config", str(tmp_path / "absent")]) == 2


def test_forms_of_bodies_are_those_of_the_option() -> None:
    forms, _ = get_args(get_type_hints(BodyOptions)["body"])
    assert set(get_args(forms)) == BODY_FORMS
