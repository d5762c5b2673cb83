"""What `sql` runs: queries, with table functions that make their rows of their arguments.

DuckDB itself is locked, too (`SqlSession`). This stands in front of it: commands, and table functions that
look at files, at the program or at its settings, are not run at all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUERIES = frozenset({"SELECT", "MULTI"})
"""types of DuckDB's statements: SELECT with WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE; MULTI is PIVOT"""
_TABLE_FUNCTIONS = frozenset({
    "generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each", "json_tree",
    "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "test_all_types", "unnest",
})  # fmt: skip


def refuse_all_but_queries(duckdb: Any, database: Any, sql: str) -> None:
    """Raises `UsageError` unless `sql` is one query, or EXPLAIN of one."""
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:  # of several, DuckDB would show the result of the last
        raise UsageError(f"SQL holds {len(statements)} statements; give one")
    words = list(_words(duckdb, sql))
    kind = statements[0].type.name
    if kind not in _QUERIES and not (kind == "EXPLAIN" and _explains_a_query(duckdb, words)):
        raise UsageError("only queries are run: the statement is a command")
    called = {_unquoted(word) for word, behind in pairwise(words) if behind.startswith("(")}
    asked = called - _TABLE_FUNCTIONS
    known = (
        "select function_name from duckdb_functions() where list_contains(?, function_name)"
        " and function_type in ('table', 'table_macro') order by all limit 1"
    )
    found = database.execute(known, [sorted(asked)]).fetchone() if asked else None
    if found is not None:
        raise UsageError(f"only the tables of the store are read: {found[0]} is none of their functions")


def _words(duckdb: Any, sql: str) -> Iterator[str]:
    """The words of a statement, without comments. DuckDB counts the bytes of UTF-8."""
    text = sql.encode("utf-8", "replace")
    tokens = duckdb.tokenize(sql)
    for (start, kind), (end, _) in pairwise([*tokens, (len(text), None)]):
        if kind.name != "comment":
            yield text[start:end].decode("utf-8", "replace").strip()


def _unquoted(word: str) -> str:
    return (word[1:-1].replace('""', '"') if word.startswith('"') else word).lower()


def _explains_a_query(duckdb: Any, words: list[str]) -> bool:
    """EXPLAIN ANALYZE runs what it is given: that is what stands behind the options."""
    behind = words[2:] if words[1].lower() == "analyze" else words[1:]
    for start in (0, behind.index(")") + 1 if ")" in behind else 0):
        try:
            found = duckdb.extract_statements(" ".join(behind[start:]))
        except duckdb.Error:  # these are options
            continue
        return [one.type.name in _QUERIES for one in found] == [True]
    return False
