"""The document with what `--redact` hides taken out: the rules of `output.redaction` over texts of findings.

A record of a store has its keys, hosts and properties in columns of their own; here they can only stand in
what was read where a record was expected, in facts of a plan, and in texts with an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue import CATALOGUE
from rmqtool.output.redaction import REDACTED
from rmqtool.output.redaction_rules import holds_host_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = dict[str, Any]

_READ = ("expected", "found")
"""values of a finding that were read in the store: they may be any text of a record"""
_FACTS = frozenset(
    {"type", "action", "path", "position", "length", "size", "mtime_timestamp", "why", "message", "topic"}
)
"""keys of a change that say nothing of one record's keys, hosts and properties"""


def redacted(document: Row, what: frozenset[str]) -> Row:
    """The same document. what: some of `body`, `keys`, `hosts`, `properties`; none leaves it as it is."""
    if not what:
        return document
    made = {**document, "redaction": sorted(what)}
    verify = document["verify"]
    groups = [{**group, "first": [*map(_finding, group["first"])]} for group in verify["groups"]]
    made["verify"] = {**verify, "groups": groups}
    if document["plan"].get("rows") is not None:
        made["plan"] = {**document["plan"], "rows": [*map(_change, document["plan"]["rows"])]}
    made["journals"] = [{**one, "rows": [*map(_change, one["rows"])]} for one in document["journals"]]
    return _without_hosts(made) if "hosts" in what else made


def _finding(row: Row) -> Row:
    names = [name for name in _READ if row.get(name) is not None]
    if not names:
        return row
    shown = _Facts({**row, **dict.fromkeys(_READ, REDACTED)})
    sentence = CATALOGUE[row["code"]].filled(shown)
    return {**row, **dict.fromkeys(names), "message": sentence, "redacted": names}


class _Facts(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _change(row: Row) -> Row:
    hidden = sorted(name for name, one in row.items() if name not in _FACTS and not _is_plain(one))
    return {**row, **dict.fromkeys(hidden), "redacted": hidden} if hidden else row


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _without_hosts(content: Any) -> Any:
    if isinstance(content, dict):
        return _table(content)
    if isinstance(content, list):
        return [_without_hosts(one) for one in content]
    if isinstance(content, str) and holds_host_text(content.encode("utf-8", "surrogatepass").lower()):
        return REDACTED
    return content


def _table(content: Mapping[str, Any]) -> Row:
    """Names that hold an address are counted, so that none takes another's place."""
    found: Row = {}
    for name, value in content.items():
        shown = _without_hosts(name)
        if shown != name and shown in found:
            shown = f"{REDACTED[:-1]} {sum(one.startswith(REDACTED[:-1]) for one in found) + 1})"
        found[shown] = _without_hosts(value)
    return found
