"""Random filter expressions, judged by the real parser and by ours.

The JVM runs in a process of its own, because one process can start only one, with one class path.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from rmqtool.errors import UsageError
from rmqtool.query.sql92 import Sql92Filter
from tests.interop.jars import UnavailableError, jars, quiet_logging

pytestmark = pytest.mark.interop

RELEASE = "5.3.3"
CHILD = """
import json, sys
import jpype

asked = json.load(sys.stdin)
jpype.startJVM("-Xmx256m", f"-Dlogback.configurationFile={asked['quiet']}", classpath=asked["jars"])
parser = jpype.JClass("org.apache.rocketmq.filter.parser.SelectorParser")

@jpype.JImplements("org.apache.rocketmq.filter.expression.EvaluationContext")
class Properties:
    def __init__(self, values):
        self.values = values

    @jpype.JOverride
    def get(self, name):
        return self.values.get(str(name))

    @jpype.JOverride
    def keyValues(self):
        return None

def judge(expression, rows):
    try:
        tree = parser.parse(expression)
    except jpype.JException:
        return None
    answers = []
    for row in rows:
        try:
            value = tree.evaluate(Properties(row))
            answers.append(2 if value is None else int(bool(value)))
        except jpype.JException:
            answers.append(3)
    return answers

print(json.dumps([judge(*one) for one in asked["cases"]]))
"""
VALUES = (
    "1", "0", "-1", "5", "5.0", "abc", "TRUE", "false", "", "it's", " 7", "7 ", "NaN", "1e3", "2147483648",
    "9223372036854775808", "+3", "0x1p3", "1d", "1_0", "Infinity", "\u0661",
)  # fmt: skip
STRINGS = ("'a'", "'abc'", "'5'", "''", "'b'")
BEHIND = ("b", "'x'", "6", ")", "(b = 6)", "NOT", "IS", "=", "LIKE 'x'", ";", "AND", "c #", "BETWEEN 1")


class Expressions:
    """Expressions of all kinds, most of them right."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def any(self) -> str:
        made = self.either(2)
        return f"{made} {self.chance.choice(BEHIND)}" if self.chance.random() < 0.15 else made

    def primary(self, depth: int) -> str:
        kinds: tuple[tuple[str, ...], ...] = (
            ("a", "b", "c"),
            ("a", "b", "c"),
            ("a", "b", "c"),
            ("1", "5", "0", "2147483648", "9223372036854775807", "3L"),
            ("5.0", ".5", "5.", "1e3", "1.5E-2"),
            ("'abc'", "'5'", "''", "'it''s'", "'true'"),
            ("TRUE", "false", "NULL"),
            (f"({self.either(depth - 1)})" if depth else "a",),
        )
        return self.chance.choice(self.chance.choice(kinds))

    def unary(self, depth: int) -> str:
        kind = self.chance.randrange(8)
        return (("-", "NOT ", "+ ")[kind] if kind < 3 else "") + self.primary(depth)

    def compared(self, depth: int) -> str:
        text = self.unary(depth)
        for _ in range(self.chance.choice((0, 1, 1, 1, 2))):
            inverted = self.chance.choice((" ", " NOT "))
            kind = self.chance.randrange(7)
            if kind < 4:
                text += f" {self.chance.choice(('<', '>', '<=', '>='))} {self.unary(depth)}"
            elif kind == 4:
                word = self.chance.choice(("CONTAINS", "startswith", "EndsWith"))
                text += f"{inverted}{word} {self.chance.choice(STRINGS)}"
            elif kind == 5:
                text += f"{inverted}BETWEEN {self.unary(depth)} AND {self.unary(depth)}"
            else:
                names = ",".join(self.chance.choices(STRINGS, k=self.chance.randint(1, 6)))
                text += f"{inverted}IN ({names})"
        return text

    def equal(self, depth: int) -> str:
        text = self.compared(depth)
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            kinds = (f"= {self.compared(depth)}", f"<> {self.compared(depth)}", "IS NULL", "IS NOT NULL")
            text += f" {self.chance.choice(kinds)}"
        return text

    def both(self, depth: int) -> str:
        return " AND ".join(self.equal(depth) for _ in range(self.chance.choice((1, 1, 2))))

    def either(self, depth: int) -> str:
        return " OR ".join(self.both(depth) for _ in range(self.chance.choice((1, 1, 2))))

    def row(self) -> dict[str, str]:
        return {name: self.chance.choice(VALUES) for name in "abc" if self.chance.random() < 0.8}


def ours(expression: str, rows: list[dict[str, str]]) -> list[int] | None:
    try:
        made = Sql92Filter(expression)
    except UsageError:
        return None
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in made.names}
    return [int(code) for code in made.codes(columns, len(rows))]


def theirs(cases: list[Any]) -> list[list[int] | None]:
    asked = {
        "jars": [str(jar) for jar in jars(RELEASE, "filter")],
        "quiet": str(quiet_logging()),
        "cases": cases,
    }
    done = subprocess.run(  # noqa: PLW1510 - judged below
        [sys.executable, "-c", CHILD], input=json.dumps(asked), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[int] | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("count", [200, pytest.param(40_000, marks=pytest.mark.full)])
def test_expressions_mean_what_they_mean_to_the_broker(count: int) -> None:
    made = Expressions(seed=count)
    cases = [(made.any(), [made.row() for _ in range(5)]) for _ in range(count)]
    try:
        java = theirs(cases)
    except UnavailableError as missing:
        pytest.skip(f"no real RocketMQ {RELEASE} here: {missing}")
    wrong = [
        (expression, rows, wanted, got)
        for (expression, rows), wanted in zip(cases, java, strict=True)
        if (got := ours(expression, rows)) != wanted
    ]
    assert wrong == []
    taken = [answers for answers in java if answers is not None]
    assert len(taken) > count // 8
    assert {code for answers in taken for code in answers} == {0, 1, 2, 3}
