"""The examples of docs/message-store.md run, one behind the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.project.files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = EXAMPLE.findall((ROOT / "docs" / "message-store.md").read_text(encoding="utf-8"))
    assert len(examples) == 6
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)
    shown = capsys.readouterr().out
    lines = ("PUT_OK 0 0", "['OrderTopic', 'Ordered']", "1000 {'PUT_OK'}", "1099", "(0, 1110)", "b'4711'")
    assert [line for line in lines if line not in shown] == []
