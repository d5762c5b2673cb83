"""The boundary: what ends how."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.cli.main import run
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

# A shell ignores SIGINT for what it runs in the background, and children inherit that.
DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rmqtool.cli import commands, main
commands.COMMANDS["echo"] = commands.Entry("tests.cli.echo_command", "Says what it was given.")
main.main()
"""


def start(*args: str, **options: object) -> subprocess.Popen[str]:
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", DRIVER, *args], **{**pipe, **options})


def into_closed_pipe(*args: str) -> tuple[int, str]:
    """Exit code and stderr when nobody reads standard output."""
    read, write = os.pipe()
    os.close(read)
    process = start(*args, stdout=write)
    os.close(write)
    error = process.communicate(timeout=60)[1]
    return process.returncode, error


def test_bare_program_names_the_command_to_begin_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("rmqtool doctor STORE")
    assert max(map(len, lines)) <= 80


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.match(r"rmqtool \S+", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("failure", "code", "line"),
    [
        ("usage", 2, "rmqtool: no store"),
        ("extra", 2, "rmqtool: sql needs the extra 'sql': pip install 'rmqtool[sql]'"),
        ("unreadable", 3, "rmqtool: commitlog/0: bytes 10 to 15 cannot be read: Input/output error"),
        ("newer", 6, "rmqtool: a format of the future"),
        ("locked", 5, "rmqtool: held by process 7"),
        ("os", 4, "rmqtool: a b: Permission denied"),
        (
            "defect",
            4,
            r"rmqtool: internal error: ZeroDivisionError: line break \x1b[2J (--debug shows where)",
        ),
        ("memory", 4, "rmqtool: not enough memory (--debug shows for what)"),
        ("interrupt", 130, None),
        ("exit", 3, None),
    ],
)
def test_every_failure_is_one_line_and_a_code(
    echo: str, capsys: pytest.CaptureFixture[str], failure: str, code: int, line: str | None
) -> None:
    assert run([echo, "--fail", failure, "--format", "ndjson"]) == code
    assert capsys.readouterr().err == ("" if line is None else f"{line}\n")


def test_exit_code_is_what_the_command_returns(echo: str) -> None:
    assert run([echo, "damaged", "--quiet"]) == 1
    assert run([echo, "sound", "--quiet"]) == 0


def test_debug_shows_the_traceback(echo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([echo, "--fail", "defect", "--debug"]) == 4
    error = capsys.readouterr().err
    assert "Traceback (most recent call last)" in error
    assert error.splitlines()[-1].startswith("rmqtool: internal error: ZeroDivisionError")
    assert "\x1b" not in error


@pytest.mark.parametrize(
    "argv",
    [
        ["--nope"],
        ["ech"],
        ["echo", "--nope"],
        ["echo", "-x", "store"],
        ["echo", "one", "two"],
        ["echo", "--format", "xml"],
        ["echo", "--rows", "many"],
        ["echo", "--jobs"],
        ["echo", "--json", "--format", "csv"],
        ["echo", "--format", "raw", "--jobs", "0"],
        ["echo", "--format", "raw", "--max-read-rate", "fast"],
        ["echo", "--format", "raw", "--from", "someday"],
        ["echo", "--format", "raw", "--from", "now", "--to", "-1h"],
        ["echo", "--format", "raw", "--redact", "soul"],
        ["echo", "--tz", "Mars/Olympus"],
        ["echo", "--body", "utf16"],
    ],
)
def test_wrong_usage_is_one_line_and_2(
    echo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    monkeypatch.setenv("RMQTOOL_STORE", "store")
    code = run(argv)
    if argv[1:] == ["--body", "utf16"]:  # --body alone, and a path
        assert code == 0
        return
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert shown.err.startswith("rmqtool: ")


def test_mistyped_command_and_option_get_a_suggestion(echo: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["ecko"])
    assert "Did you mean 'echo'?" in capsys.readouterr().err
    run([echo, "--topik", "T"])
    assert "--topic" in capsys.readouterr().err


def test_interrupt_ends_with_the_summary_of_what_was_covered(
    echo: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run([echo, "--rows", "3", "--fail", "interrupt", "--json"]) == 130
    document = json.loads(capsysbinary.readouterr().out)
    assert document["summary"] == {
        "schema": "rmqtool.echo/1",
        "messages": 3,
        "complete": False,
        "incomplete_reason": "interrupted",
        "not_covered": [],
    }
    assert len(document["rows"]) == 3


def test_real_interrupt(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = start("echo", "--rows", "1000000000", "--format", "ndjson", stdout=out)
    while not (tmp_path / "out").stat().st_size:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, error) == (130, "")
    last = (tmp_path / "out").read_bytes().splitlines()[-1]
    assert json.loads(last)["incomplete_reason"] == "interrupted"


@pytest.mark.share
@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv"])
@pytest.mark.parametrize("rows", [1, 1_000_000])
def test_closed_pipe_is_silent_and_141(form: str, rows: int) -> None:
    assert into_closed_pipe("echo", "--rows", str(rows), "--format", form, "--quiet") == (141, "")


@pytest.mark.share
@pytest.mark.parametrize("argv", [[], ["--help"], ["echo", "--help"], ["--version"]])
def test_closed_pipe_of_help_is_silent(argv: list[str]) -> None:
    assert into_closed_pipe(*argv) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_one_line_and_4() -> None:
    with open("/dev/full", "wb") as full:
        process = start("echo", "--rows", "5", stdout=full)
        assert process.communicate(timeout=60)[1].splitlines()[-1] == "rmqtool: No space left on device"
    assert process.returncode == 4


def test_closed_descriptors_do_not_matter() -> None:
    script = 'exec "$0" -c "$1" echo --rows 5 >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, sys.executable, DRIVER], check=False, timeout=60)
    assert done.returncode == 0


def test_help_has_the_examples_unchanged(echo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([echo, "--help"]) == 0
    assert "  rmqtool echo -2h --topic 'T[0-9]*'" in capsys.readouterr().out


def test_completion_script_and_answers() -> None:
    process = start(
        "--show-completion", env={**os.environ, "SHELL": "/bin/bash", "_RMQTOOL_COMPLETE": "source_bash"}
    )
    assert "_RMQTOOL_COMPLETE=complete_bash" in process.communicate(timeout=60)[0]
    asked = {"_RMQTOOL_COMPLETE": "complete_bash", "COMP_WORDS": "rmqtool ec", "COMP_CWORD": "1"}
    assert start(env={**os.environ, **asked}).communicate(timeout=60)[0].split() == ["echo"]
    asked |= {"COMP_WORDS": "rmqtool echo --form", "COMP_CWORD": "2"}
    assert start(env={**os.environ, **asked}).communicate(timeout=60)[0].split() == ["--format"]


def test_python_m_runs_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "rmqtool"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("rmqtool doctor STORE")


def test_a_line_of_an_error_has_an_end() -> None:
    done = rmq("info", "x" * 100_000)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert len(done.stderr) < 20_000
    assert done.stderr.endswith("…\n")
