"""SQL92 filter expressions with the broker's semantics, for whole columns of properties."""

from __future__ import annotations

from rmqtool.query.sql92.columns import Sql92Filter
from rmqtool.query.sql92.grammar import parse

__all__ = ["Sql92Filter", "parse"]
