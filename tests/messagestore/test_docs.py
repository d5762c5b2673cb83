"""The examples of docs/message-store.md run, one behind the other."""

from __future__ import annotations

import re
import shlex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import rmq
from tests.project.files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
INPUT = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _on_a_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stores of default sizes: in memory a hole that is read becomes pages, a GiB for each segment."""
    with TemporaryDirectory(dir="/var/tmp") as place, monkeypatch.context() as there:
        there.chdir(place)
        yield


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = EXAMPLE.findall((ROOT / "docs" / "message-store.md").read_text(encoding="utf-8"))
    assert len(examples) == 15
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)
    shown = capsys.readouterr().out
    lines = ("PUT_OK 0 0", "['OrderTopic', 'Ordered']", "1000 {'PUT_OK'}", "1099", "(0, 1110)", "b'4711'")
    lines += ("b'order 3'", "2 1", "[('billing', 0, 1)", "handled ['order-2']")
    lines += ("SCHEDULE_TOPIC_XXXX 0", "b'in a second' 1", "(0, 2)", "(0, 3)")
    lines += ("[0, 1] 1", "[(0, b'one'), (1, b'two')]", "Parent (0, 1)")
    lines += ("PUT_OK True", "b'to both'")
    assert [line for line in lines if line not in shown] == []


def test_the_shell_shows_what_is_shown() -> None:
    page = (ROOT / "docs" / "message-store.md").read_text(encoding="utf-8")
    shown = "".join(CONSOLE.findall(page))
    (lines,) = INPUT.findall(page)
    commands = re.split(r"^\$ rmqtool ", shown, flags=re.MULTILINE)[1:]
    assert len(commands) == 8
    for text in commands:
        command, _, expected = text.partition("\n")
        words = shlex.split(command)
        stdin = ""
        if "<" in words:
            del words[words.index("<") :]
            stdin = lines
        result = rmq(*words, stdin=stdin)
        assert result.exit_code == (1 if stdin else 0), result.stderr
        assert not expected or result.stdout == expected
