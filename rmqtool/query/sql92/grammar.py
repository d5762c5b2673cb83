"""The grammar of expressions, and the rules that the broker checks while it reads one.

`SelectorParser` and `ComparisonExpression` of 5.1.4 to 5.3.3; earlier releases have no CONTAINS, STARTSWITH
and ENDSWITH.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token, Transformer, Tree
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError

from formats.java import java_parse_int
from rmqtool.errors import UsageError
from rmqtool.query.sql92.nodes import (
    And,
    Constant,
    Equal,
    In,
    Negated,
    Node,
    Not,
    Or,
    Ordered,
    Property,
    Text,
    condition,
)
from rmqtool.query.sql92.values import Int32, Int64, UnevaluableError, compare

_GRAMMAR = r"""
start: or_expression
?or_expression: and_expression | or_expression "OR"i and_expression -> either
?and_expression: equality | and_expression "AND"i equality -> both
?equality: comparison
    | equality "=" comparison -> equal
    | equality _UNEQUAL comparison -> not_equal
    | equality "IS"i "NULL"i -> is_null
    | equality "IS"i "NOT"i "NULL"i -> is_not_null
?comparison: unary
    | comparison ORDER unary -> ordered
    | comparison TEXT STRING -> text
    | comparison "NOT"i TEXT STRING -> not_text
    | comparison "BETWEEN"i unary "AND"i unary -> between
    | comparison "NOT"i "BETWEEN"i unary "AND"i unary -> not_between
    | comparison "IN"i "(" STRING ("," STRING)* ")" -> inside
    | comparison "NOT"i "IN"i "(" STRING ("," STRING)* ")" -> outside
?unary: primary
    | "+" unary
    | "-" unary -> negated
    | "NOT"i unary -> inverted
?primary: STRING -> string
    | DECIMAL -> decimal
    | FLOAT -> float
    | "TRUE"i -> true
    | "FALSE"i -> false
    | "NULL"i -> null
    | ID -> name
    | "(" or_expression ")"
_UNEQUAL.3: "<>"
ORDER: ">=" | "<=" | ">" | "<"
TEXT.2: /(CONTAINS|STARTSWITH|ENDSWITH)(?![a-z0-9_$])/i
STRING: /'(?:''|[^'])*'/
FLOAT.2: /[0-9]+\.[0-9]*(?:E[+-]?[0-9]+)?|\.[0-9]+(?:E[+-]?[0-9]+)?|[0-9]+E[+-]?[0-9]+/i
DECIMAL: /0|[1-9][0-9]*[lL]?/
ID: /[a-z_$][a-z0-9_$]*/i
%ignore /[ \t\n\r\f]+/
%ignore /--[^\n\r]*(?:\r\n|[\n\r])/
%ignore /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
"""

_INT = 1 << 31
_LARGEST_DOUBLE = 1.7976931348623157e308
_SMALLEST_DOUBLE = 5e-324


@dataclass(frozen=True)
class Parsed:
    """An expression as a tree. ignored: what stands behind it, which a broker never looks at."""

    node: Node
    ignored: str


def parse(expression: str) -> Parsed:
    """Reads an expression. Raises `UsageError` for what a broker refuses to subscribe to."""
    try:
        tree, ignored = _tree(expression)
        made: Node = _Build().transform(tree)
    except (UnexpectedToken, UnexpectedCharacters) as error:
        raise UsageError(f"the expression makes no sense at column {error.column}: {expression}") from error
    except UnexpectedEOF as error:
        raise UsageError(f"the expression ends too early: {expression}") from error
    except VisitError as error:
        raise UsageError(f"a broker refuses the expression: {error.orig_exc}") from error
    except RecursionError as error:
        raise UsageError("the expression is too long: hundreds of conditions joined in one") from error
    except LarkError as error:
        raise UsageError(f"the expression cannot be read: {expression}") from error
    return Parsed(made, ignored)


def _tree(expression: str) -> tuple[Tree[Token], str]:
    """Java's parser stops where an expression is whole and the next token does not go on with it."""
    reading = _parser().parse_interactive(expression)
    try:
        for _ in reading.iter_parse():
            pass
    except UnexpectedToken as error:
        try:
            tree: Tree[Token] = copy(reading).feed_eof()  # type: ignore[no-untyped-call]
        except UnexpectedToken:
            raise error from None
        return tree, expression[error.pos_in_stream :]
    return reading.feed_eof(), ""  # type: ignore[no-untyped-call]


_PARSER: list[Lark] = []


def _parser() -> Lark:
    if not _PARSER:
        _PARSER.append(Lark(_GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=False))
    return _PARSER[0]


def _text(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _comparable(*nodes: Node) -> None:
    """`ComparisonExpression#checkLessThanOperand`: numbers and properties only."""
    for node in nodes:
        number = isinstance(node, Constant) and isinstance(node.constant, (Int32, Int64, float))
        if not number and (isinstance(node, Constant) or node.boolean):
            raise UnevaluableError("only numbers and properties can be compared by order")


def _equatable(left: Node, right: Node) -> None:
    """`ComparisonExpression#checkEqualOperand`, `#checkEqualOperandCompatability`."""
    if any(isinstance(one, Constant) and one.constant is None for one in (left, right)):
        raise UnevaluableError("NULL can only be asked for with IS NULL")
    both = isinstance(left, Constant) and isinstance(right, Constant)
    if both and left.is_condition and not right.is_condition:  # type: ignore[attr-defined]
        raise UnevaluableError("a boolean cannot be compared with another constant")


def _not_null(low: Node, high: Node) -> None:
    if isinstance(low, Constant) and isinstance(high, Constant):
        if low.constant is None or high.constant is None:
            raise UnevaluableError("the bounds of BETWEEN cannot be NULL")
        if compare(high.constant, low.constant) < 0:
            raise UnevaluableError("the lower bound of BETWEEN is above the upper bound")


class _Build(Transformer[Token, Node]):
    """Tree of the parser → nodes."""

    def start(self, parts: list[Node]) -> Node:
        return condition(parts[0])

    def either(self, parts: list[Node]) -> Node:
        return Or(condition(parts[0]), condition(parts[1]))

    def both(self, parts: list[Node]) -> Node:
        return And(condition(parts[0]), condition(parts[1]))

    def equal(self, parts: list[Node]) -> Node:
        _equatable(parts[0], parts[1])
        return Equal(parts[0], parts[1])

    def not_equal(self, parts: list[Node]) -> Node:
        return Not(self.equal(parts))

    def is_null(self, parts: list[Node]) -> Node:
        return Equal(parts[0], Constant(None))

    def is_not_null(self, parts: list[Node]) -> Node:
        return Not(self.is_null(parts))

    def ordered(self, parts: list[Any]) -> Node:
        left, sign, right = parts
        _comparable(left, right)
        return Ordered(left, right, str(sign))

    def text(self, parts: list[Any]) -> Node:
        return Text(parts[0], parts[1].upper(), _text(parts[2]), inverted=False)

    def not_text(self, parts: list[Any]) -> Node:
        return Text(parts[0], parts[1].upper(), _text(parts[2]), inverted=True)

    def between(self, parts: list[Node]) -> Node:
        value, low, high = parts
        _not_null(low, high)
        _comparable(value, low, high)
        return And(Ordered(value, low, ">="), Ordered(value, high, "<="))

    def not_between(self, parts: list[Node]) -> Node:
        value, low, high = parts
        _comparable(value, low, high)
        return Or(Ordered(value, low, "<"), Ordered(value, high, ">"))

    def _in(self, parts: list[Any], *, inverted: bool) -> Node:
        if not isinstance(parts[0], Property):
            raise UnevaluableError("IN may only follow the name of a property")
        return In(parts[0], frozenset(map(_text, parts[1:])), inverted)

    def inside(self, parts: list[Any]) -> Node:
        return self._in(parts, inverted=False)

    def outside(self, parts: list[Any]) -> Node:
        return self._in(parts, inverted=True)

    def negated(self, parts: list[Node]) -> Node:
        return Negated(parts[0])

    def inverted(self, parts: list[Node]) -> Node:
        return Not(condition(parts[0]))

    def string(self, parts: list[Token]) -> Node:
        return Constant(_text(parts[0]))

    def decimal(self, parts: list[Token]) -> Node:
        value = java_parse_int(parts[0].rstrip("lL"), 64)
        if value is None:
            raise UnevaluableError(f"{parts[0]} is too large")
        return Constant(Int32(value) if value < _INT else Int64(value))

    def float(self, parts: list[Token]) -> Node:
        value = float(parts[0])
        if not _SMALLEST_DOUBLE <= value <= _LARGEST_DOUBLE:
            raise UnevaluableError(f"{parts[0]} is not a number that an expression may contain")
        return Constant(value)

    def true(self, _: list[Token]) -> Node:
        return Constant(constant=True)

    def false(self, _: list[Token]) -> Node:
        return Constant(constant=False)

    def null(self, _: list[Token]) -> Node:
        return Constant(None)

    def name(self, parts: list[Token]) -> Node:
        return Property(str(parts[0]))
