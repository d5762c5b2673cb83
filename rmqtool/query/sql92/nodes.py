"""What an expression is made of. A node computes one record's value; logic is combined by `columns`."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rmqtool.query.sql92.values import UnevaluableError, Value, compare, negate, to_double

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Properties = Mapping[str, str | None]

_ORDER: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Node(ABC):
    """A part of an expression. boolean: whether it may stand where a condition must."""

    boolean: ClassVar[bool] = True

    @property
    def names(self) -> frozenset[str]:
        """Properties that are read."""
        return frozenset()

    @abstractmethod
    def value(self, properties: Properties) -> Value:
        """Value for one record; raises `UnevaluableError`."""


@dataclass(frozen=True)
class Constant(Node):
    """A literal (`ConstantExpression`, `BooleanConstantExpression`)."""

    constant: Value

    @property
    def is_condition(self) -> bool:
        """TRUE, FALSE and NULL are conditions, strings and numbers are not."""
        return self.constant is None or isinstance(self.constant, bool)

    def value(self, properties: Properties) -> Value:  # noqa: ARG002
        """Value for one record."""
        return self.constant


@dataclass(frozen=True)
class Property(Node):
    """A property by its name; null where the record has none (`PropertyExpression`)."""

    boolean = False
    name: str

    @property
    def names(self) -> frozenset[str]:
        """Properties that are read."""
        return frozenset({self.name})

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        return properties.get(self.name)


@dataclass(frozen=True)
class _Unary(Node):
    right: Node

    @property
    def names(self) -> frozenset[str]:
        """Properties that are read."""
        return self.right.names


@dataclass(frozen=True)
class Negated(_Unary):
    """A number with a minus sign; null for anything else."""

    boolean = False

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        return negate(self.right.value(properties))


@dataclass(frozen=True)
class Cast(_Unary):
    """A property where a condition stands: never true, as a property is a string."""

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        found = self.right.value(properties)
        return None if found is None else found is True


@dataclass(frozen=True)
class Not(_Unary):
    """`NOT`; unknown stays unknown. It binds to what stands right behind it: `NOT a = 1` is `(NOT a) = 1`."""

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        found = self.right.value(properties)
        return None if found is None else not found


@dataclass(frozen=True)
class _Binary(Node):
    left: Node
    right: Node

    @property
    def names(self) -> frozenset[str]:
        """Properties that are read."""
        return self.left.names | self.right.names


@dataclass(frozen=True)
class And(_Binary):
    """`AND` of three values; the right side is not looked at where the left is false."""

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        left = self.left.value(properties)
        right = False if left is False else self.right.value(properties)
        if right is False:
            return False
        return None if left is None or right is None else True


@dataclass(frozen=True)
class Or(_Binary):
    """`OR` of three values; the right side is not looked at where the left is true."""

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        left = self.left.value(properties)
        right = True if left is True else self.right.value(properties)
        if right is True:
            return True
        return None if left is None or right is None else False


@dataclass(frozen=True)
class Equal(_Binary):
    """`=`, and `IS NULL` with a NULL on the right."""

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        left, right = self.left.value(properties), self.right.value(properties)
        if (left is None) != (right is None):
            return None if left is None else False
        return (left is None and right is None) or compare(left, right) == 0


@dataclass(frozen=True)
class Ordered(_Binary):
    """`>`, `>=`, `<`, `<=`: of numbers, or of two strings that are numbers."""

    sign: str

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        left = self.left.value(properties)
        right = None if left is None else self.right.value(properties)
        if left is None or right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            left, right = to_double(left), to_double(right)
        return _ORDER[self.sign](compare(left, right), 0)


@dataclass(frozen=True)
class In(_Unary):
    """`IN`, `NOT IN`: unknown for what is not a string."""

    texts: frozenset[str]
    inverted: bool

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        found = self.right.value(properties)
        return (found in self.texts) != self.inverted if isinstance(found, str) else None


@dataclass(frozen=True)
class Text(_Unary):
    """`CONTAINS`, `STARTSWITH`, `ENDSWITH` and their opposites: false for what is not a string."""

    test: str
    search: str
    inverted: bool

    _TESTS: ClassVar[dict[str, Callable[[str, str], bool]]] = {
        "CONTAINS": operator.contains,
        "STARTSWITH": str.startswith,
        "ENDSWITH": str.endswith,
    }

    def value(self, properties: Properties) -> Value:
        """Value for one record."""
        found = self.right.value(properties) if self.search else None
        if not isinstance(found, str):
            return False
        return self._TESTS[self.test](found, self.search) != self.inverted


def condition(node: Node) -> Node:
    """The node where a condition must stand; raises `UnevaluableError` when it is none."""
    if isinstance(node, Property):
        return Cast(node)
    if (isinstance(node, Constant) and not node.is_condition) or not node.boolean:
        raise UnevaluableError("an expression that is not a condition stands where a condition is required")
    return node
