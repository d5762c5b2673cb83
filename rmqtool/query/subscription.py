"""A subscription's filter: what passes at the broker, and what passes at the consumer.

The broker compares the tags code of a unit with the hashes of the wanted tags, so that colliding tags pass;
the consumer compares the tags themselves (`ExpressionMessageFilter`, `FilterAPI#buildSubscriptionData`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.java import java_hash
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.query.sql92 import Sql92Filter

    Mask = npt.NDArray[np.bool_]

_ALL = "*"
_INT = 1 << 32


class FilterType(StrEnum):
    """`ExpressionType`."""

    TAG = "TAG"
    SQL92 = "SQL92"


@dataclass(frozen=True)
class Subscription:
    """One expression. Make it with `Subscription.of`, which refuses what a broker refuses."""

    expression: str
    type: FilterType = FilterType.TAG

    @classmethod
    def of(cls, expression: str, kind: FilterType = FilterType.TAG) -> Subscription:
        """Raises `UsageError` for an expression that no broker takes."""
        made = cls(expression, kind)
        if kind is FilterType.SQL92:
            made.sql92  # noqa: B018 - compiled once, here, so that errors come at once
        elif not made.takes_all and not made.tags:
            raise UsageError(f"'{expression}' names no tag")
        return made

    @cached_property
    def sql92(self) -> Sql92Filter:
        """The compiled expression."""
        from rmqtool.query.sql92 import Sql92Filter

        return Sql92Filter(self.expression)

    @property
    def ignored(self) -> str:
        """The end of an SQL92 expression that a broker does not look at."""
        return self.sql92.ignored if self.type is FilterType.SQL92 else ""

    @property
    def takes_all(self) -> bool:
        """Whether the expression keeps nothing back."""
        return self.type is FilterType.TAG and self.expression.strip() in {"", _ALL}

    @cached_property
    def tags(self) -> frozenset[str]:
        """The tags of `a || b`."""
        return frozenset(part.strip() for part in self.expression.split("||") if part.strip())

    @cached_property
    def codes(self) -> frozenset[int]:
        """Hashes of the tags (`SubscriptionData#codeSet`)."""
        return frozenset(java_hash(tag) for tag in self.tags)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the record table that `passes` reads."""
        if self.takes_all:
            return ()
        return ("properties",) if self.type is FilterType.SQL92 else ("tags",)

    def passes_unit(self, tags_code: int | None) -> bool:
        """Whether a unit with this tags code passes at the broker; only tags are judged by it.

        None: its extension unit is not there; then it passes (`#isMatchedByConsumeQueue`).
        """
        if self.takes_all or self.type is FilterType.SQL92 or tags_code is None:
            return True
        low = tags_code % _INT
        return (low - _INT if low >= _INT // 2 else low) in self.codes

    def passes(self, batch: pa.RecordBatch) -> Mask:
        """Which records a consumer with this subscription is given."""
        if self.takes_all:
            return np.ones(batch.num_rows, np.bool_)
        if self.type is FilterType.SQL92:
            return self.sql92.passes(batch["properties"])
        found = pc.is_in(batch["tags"], pa.array(sorted(self.tags), pa.string()))
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
