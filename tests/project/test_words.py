"""Sentences that users read have RocketMQ's terms; names of code and keys of JSON are words of their own."""

from __future__ import annotations

import ast
import re

from tests.project.files import ROOT, sources

WRONG = (r"\bitems?\b", r"consume.queue units?\b", r"\bis none of\b", r"given out twice")
"""it says: index entry; consume queue entry; must be one of; reused"""


def test_sentences() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sources("rmqtool")
        for line, word in _wrong(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def _wrong(text: str) -> list[tuple[int, str]]:
    """Line and pattern of strings with blanks in them; a docstring tells readers of code."""
    if not any(re.search(word, text) for word in WRONG):
        return []
    tree = ast.parse(text)
    told = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    return [
        (one.lineno, word)
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and " " in one.value
        for word in WRONG
        if id(one) not in told and re.search(word, re.sub(r"{\w+}", "", one.value))
    ]
