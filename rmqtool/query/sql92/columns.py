"""Expressions over whole columns: each distinct value is judged once, logic is done on codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.sql92.grammar import parse
from rmqtool.query.sql92.nodes import And, Not, Or
from rmqtool.query.sql92.values import UnevaluableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.query.sql92.nodes import Node

    Codes = npt.NDArray[np.int8]

FALSE, TRUE, UNKNOWN, FAILED = range(4)
"""`FAILED`: a Java exception; the record does not pass, whatever else the expression says"""

_AND = np.array([[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 2, 3], [3, 3, 3, 3]], np.int8)
_OR = np.array([[0, 1, 2, 3], [1, 1, 1, 1], [2, 1, 2, 3], [3, 3, 3, 3]], np.int8)
_NOT = np.array([1, 0, 2, 3], np.int8)
"""by the code of the left side, then of the right side, which a decided left side keeps from failing"""

_KEPT = 100_000
"""distinct values whose judgement is remembered for each condition"""


class Sql92Filter:
    """One expression, compiled; `passes` may be called with batch after batch."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        parsed = parse(expression)
        self._node = parsed.node
        self.ignored = parsed.ignored
        """what stands behind the expression, which a broker does not look at"""
        self.names = tuple(sorted(self._node.names))
        self._known: dict[Node, dict[tuple[str | None, ...], int]] = {}

    def passes(self, properties: pa.MapArray) -> npt.NDArray[np.bool_]:
        """Which records pass, by their properties (`table.PROPERTIES`; the last of several counts)."""
        columns = {name: pc.map_lookup(properties, pa.scalar(name), "last") for name in self.names}
        return np.equal(self.codes(columns, len(properties)), TRUE)

    def codes(self, columns: Mapping[str, pa.Array], count: int) -> Codes:
        """`FALSE`, `TRUE`, `UNKNOWN` or `FAILED` for each of `count` records."""
        return self._codes(self._node, columns, count)

    def _codes(self, node: Node, columns: Mapping[str, pa.Array], count: int) -> Codes:
        if isinstance(node, And | Or):
            left, right = (self._codes(side, columns, count) for side in (node.left, node.right))
            return (_AND if isinstance(node, And) else _OR)[left, right]
        if isinstance(node, Not):
            return _NOT[self._codes(node.right, columns, count)]
        return self._judge(node, columns, count)

    def _judge(self, node: Node, columns: Mapping[str, pa.Array], count: int) -> Codes:
        names = sorted(node.names)
        known = self._known.setdefault(node, {})
        if len(known) > _KEPT:
            known.clear()
        if not names:
            return np.full(count, _code(node, (), ()), np.int8)
        coded = [pc.dictionary_encode(columns[name], null_encoding="encode") for name in names]
        rows = np.stack([one.indices.to_numpy() for one in coded])
        distinct, places = np.unique(rows, axis=1, return_inverse=True)
        texts = [one.dictionary.to_pylist() for one in coded]
        judged = np.empty(distinct.shape[1], np.int8)
        for index, combination in enumerate(distinct.T.tolist()):
            values = tuple(text[at] for text, at in zip(texts, combination, strict=True))
            if values not in known:
                known[values] = _code(node, names, values)
            judged[index] = known[values]
        return judged[places.reshape(-1)]


def _code(node: Node, names: tuple[str, ...] | list[str], values: tuple[str | None, ...]) -> int:
    try:
        value = node.value(dict(zip(names, values, strict=True)))
    except UnevaluableError:
        return FAILED
    if value is None:
        return UNKNOWN
    return TRUE if value is True else FALSE
