"""What `sql` runs: queries of its tables, with functions that make their values and rows of their arguments.

DuckDB itself is locked, too (`SqlSession`). This stands in front of it, on the parsed statement: commands,
other tables, and functions that look at files, at the program or at its settings, are not run at all.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_QUERIES = frozenset({"SELECT", "MULTI"})
"""types of DuckDB's statements: SELECT with WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE; MULTI is PIVOT"""
_TABLE_FUNCTIONS = frozenset({
    "generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each", "json_tree",
    "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "test_all_types", "unnest",
})  # fmt: skip
_FUNCTIONS = frozenset({
    "age", "current_date", "current_localtime", "current_localtimestamp", "error", "gen_random_uuid",
    "get_current_time", "get_current_timestamp", "now", "random", "setseed", "today", "transaction_timestamp",
    "uuid", "uuidv4", "uuidv7",
})  # fmt: skip
"""clocks and dice: run, though what they give is not made of their arguments alone"""
_NODES = frozenset({
    "BASE_TABLE", "CTE_NODE", "DISTINCT_MODIFIER", "EMPTY", "EXPRESSION_LIST", "JOIN", "LIMIT_MODIFIER",
    "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "PIVOT", "RECURSIVE_CTE_NODE", "SELECT_NODE",
    "SET_OPERATION_NODE", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION",
})  # fmt: skip
"""of a parsed query, beside its expressions"""
_ORDERS = frozenset({"ASCENDING", "DESCENDING", "ORDER_DEFAULT"})


def refuse_all_but_queries(duckdb: Any, database: Any, sql: str, tables: Collection[str]) -> None:
    """Raises `UsageError` unless `sql` is one query of these tables, or EXPLAIN of one."""
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise UsageError("SQL is not UTF-8 text") from error
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:  # of several, DuckDB would show the result of the last
        raise UsageError(f"SQL holds {len(statements)} statements; give one")
    words = list(_words(duckdb, sql))
    kind = _kind(statements[0])
    query = sql if kind in _QUERIES else None
    if kind == "EXPLAIN":
        query = _explained(duckdb, words)
    if query is None:
        raise UsageError("only queries are run: the statement is a command")
    parsed = _parsed(duckdb, database, query)
    if parsed is None:
        _refuse_by_words(database, words)
    else:
        _refuse_by_nodes(parsed, tables)
        _refuse_functions(
            database, {node["function_name"] for node in _dicts(parsed) if "function_name" in node}
        )


def _kind(statement: Any) -> str:
    """The type of a statement; "" for one without a name in Python, such as UPDATE EXTENSIONS."""
    try:
        name: str = statement.type.name
    except ValueError:
        return ""
    return name


def _parsed(duckdb: Any, database: Any, query: str) -> list[Any] | None:
    """A query as DuckDB parses it; None where it does not tell (PIVOT), or it is too deep for Python."""
    try:
        ((reported,),) = database.execute("select json_serialize_sql(?)", [query]).fetchall()
        found = json.loads(reported)
    except (duckdb.Error, RecursionError):
        return None
    statements: list[Any] | None = found.get("statements")
    return statements


def _refuse_by_nodes(parsed: list[Any], tables: Collection[str]) -> None:
    """Raises `UsageError` for a node, table or table function of a parsed query that is not listed."""
    waiting: list[tuple[Any, frozenset[str]]] = [(parsed, frozenset(one.lower() for one in tables))]
    while waiting:
        node, known = waiting.pop()
        if isinstance(node, dict):
            _refuse_node(node, known)
            waiting += _below(node, known)
        elif isinstance(node, list):
            waiting += ((one, known) for one in node)


def _below(node: dict[str, Any], known: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
    """What lies in a node, each with the names of tables that are known there: those of WITH from it on."""
    if node.get("type") == "RECURSIVE_CTE_NODE":
        known |= {node["cte_name"].lower()}
    with_ = node.get("cte_map")
    for one in with_["map"] if isinstance(with_, dict) else ():
        yield one["value"], known
        known |= {one["key"].lower()}
    yield from ((value, known) for key, value in node.items() if key != "cte_map")


def _refuse_node(node: dict[str, Any], known: frozenset[str]) -> None:
    kind = node.get("type")
    if "class" in node or not isinstance(kind, str) or kind in _ORDERS:
        return
    if kind not in _NODES:
        raise UsageError(f"only queries over the tables of the store are run, no {kind}")
    if kind == "TABLE_FUNCTION":
        name = node["function"].get("function_name", "")
        if node["function"].get("class") != "FUNCTION" or name.lower() not in _TABLE_FUNCTIONS:
            raise UsageError(f"only the tables of the store are read: {name} is not one of their functions")
    elif kind == "BASE_TABLE":
        place = [*filter(None, (node.get("catalog_name"), node.get("schema_name"))), node["table_name"]]
        if len(place) > 1 or place[0].lower() not in known:
            name, tables = ".".join(place), ", ".join(sorted(known))
            raise UsageError(f"there is no table {name}; only those of the store are read: {tables}")


def _dicts(parsed: list[Any]) -> Iterator[dict[str, Any]]:
    """Every object of parsed JSON."""
    waiting: list[Any] = list(parsed)
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _refuse_functions(database: Any, called: Collection[str]) -> None:
    """Raises `UsageError` for a function that DuckDB does not call consistent, or a macro that looks around.

    A plan may hold the values of functions that it has in it. Those of points in time depend on a time zone,
    which the session sets; from 2.0.1 on DuckDB calls them consistent within a query only.
    """
    found = database.execute(
        "select function_name from duckdb_functions() where list_contains(?, function_name) and ("
        " function_name = 'json_serialize_plan' or (stability <> 'CONSISTENT'"
        " and not (stability = 'CONSISTENT_WITHIN_QUERY' and regexp_matches("
        "list_append(parameter_types, return_type)::varchar, 'TIMESTAMPTZ|WITH TIME ZONE')))"
        " or regexp_matches(macro_definition, '(duckdb_|pragma_|sleep)\\w*\\('))"
        " order by all limit 1",
        [sorted({one.lower() for one in called} - _FUNCTIONS)],
    ).fetchone()
    if found is not None:
        raise UsageError(f"only the tables of the store are read: {found[0]} reads others")


def _refuse_by_words(database: Any, words: list[str]) -> None:
    """The same by words: functions in front of "(", tables of DuckDB itself wherever they stand."""
    called = {_unquoted(word) for word, behind in pairwise(words) if behind.startswith("(")}
    _refuse_functions(database, called)
    found = database.execute(
        "select function_name from duckdb_functions() where list_contains(?, function_name)"
        " and function_type in ('table', 'table_macro') union all "
        "select distinct named from (select unnest([schema_name, view_name]) as named from duckdb_views()"
        " where internal) where list_contains(?, named)"
        " order by all limit 1",
        [sorted(called - _TABLE_FUNCTIONS), sorted({_unquoted(word) for word in words} - {"main"})],
    ).fetchone()
    if found is not None:
        raise UsageError(f"only the tables of the store are read: {found[0]} is not one of them")


def _words(duckdb: Any, sql: str) -> Iterator[str]:
    """The words of a statement, without comments. DuckDB counts the bytes of UTF-8."""
    text = sql.encode("utf-8", "replace")
    tokens = duckdb.tokenize(sql)
    for (start, kind), (end, _) in pairwise([*tokens, (len(text), None)]):
        if kind.name != "comment":
            yield text[start:end].decode("utf-8", "replace").strip()


def _unquoted(word: str) -> str:
    mark = word[:1]
    return (word[1:-1].replace(mark * 2, mark) if mark in {'"', "'"} else word).lower()


def _explained(duckdb: Any, words: list[str]) -> str | None:
    """The query that EXPLAIN is given, None for commands: EXPLAIN ANALYZE runs it."""
    behind = words[2:] if words[1].lower() == "analyze" else words[1:]
    for start in (0, behind.index(")") + 1 if ")" in behind else 0):
        query = " ".join(behind[start:])
        try:
            found = duckdb.extract_statements(query)
        except duckdb.Error:  # these are options
            continue
        return query if [one.type.name in _QUERIES for one in found] == [True] else None
    return None
