"""A tally as rows of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.explain.derived import DERIVED
from rmqtool.explain.entry import SEVERITIES
from rmqtool.secrets import hide, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rmqtool.explain.entry import Entry
    from rmqtool.explain.tally import Cause, Seen, Tally, Unknown

Row = dict[str, Any]


def cause_rows(tally: Tally, store: str, evidence: Callable[[Cause], list[str]] | None) -> list[Row]:
    """The causes, worst first, then in the order in which they occurred.

    store: what STORE in a next command becomes. evidence: what a store shows about a cause.
    """
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    causes = sorted(tally.causes.values(), key=lambda one: order[one.entry.severity])
    return [_cause_row(one, store, evidence) for one in causes]


def unknown_rows(tally: Tally, most: int) -> list[Row]:
    """The most frequent alarming lines without explanation."""
    groups = sorted(tally.unknown.values(), key=lambda one: -one.count)
    return [_unknown_row(one) for one in groups[:most]]


def summary_of(tally: Tally, unreadable: list[Row]) -> Row:
    """The closing summary."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for cause in tally.causes.values():
        counts[cause.entry.severity] += cause.count
    reported: Row = {
        "lines": tally.lines,
        "records": tally.records,
        "bytes": tally.bytes,
        "explained": tally.explained,
        "by_severity": counts,
        "causes": len(tally.causes),
        "unknown_lines": tally.unknown_lines,
        "unknown_templates": len(tally.unknown),
        "complete": not unreadable,
    }
    return (
        reported | {"incomplete_reason": "unreadable", "not_covered": unreadable} if unreadable else reported
    )


def commands(entry: Entry, samples: list[dict[str, str]], store: str) -> list[str]:
    """The next commands of an entry, filled with the values of the first line that has them."""
    filled = []
    for command in entry.next:
        for values in samples or [{}]:
            line = _filled(command, values, store)
            if line is not None:
                filled.append(line)
                break
    return filled


def _filled(command: str, values: Mapping[str, str], store: str) -> str | None:
    words = []
    for word in command.split():
        shown = store if word == "STORE" else word
        if word.startswith("{"):
            value = values.get(word[1:-1])
            if value is None or value.startswith("-"):
                return None
            shown = value
        words.append(_quoted(shown))
    return "rmqtool " + " ".join(words)


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def remarks(cause: Cause) -> list[str]:
    """What the values of a cause's lines say, each remark once."""
    derive = cause.entry.derive
    if derive is None:
        return []
    reported = [line for values in cause.samples for line in DERIVED[derive].read(values)]
    return list(dict.fromkeys(reported))


def _cause_row(cause: Cause, store: str, evidence: Callable[[Cause], list[str]] | None) -> Row:
    entry = cause.entry
    row: Row = {
        "type": "cause",
        "id": entry.id,
        "severity": entry.severity,
        **_span(cause),
        "meaning": entry.meaning,
        "remarks": [hide(one) for one in remarks(cause)],
        "look_at": entry.look,
        "next": commands(entry, cause.samples, store),
        "incidents": list(entry.incidents),
        "source": list(entry.source),
        "releases": entry.releases or "all",
        "values": without_secrets(cause.samples),
    }
    if evidence is not None:
        row["evidence"] = evidence(cause)
    return row


def _unknown_row(group: Unknown) -> Row:
    return {"type": "unknown", "level": group.level, "template": hide(group.template), **_span(group)}


def _span(seen: Seen) -> Row:
    return {
        "count": seen.count,
        "first_timestamp": seen.first,
        "last_timestamp": seen.last,
        "exceptions": dict(seen.exceptions.most_common(5)),
        "example": hide(seen.example),
        "place": f"{seen.source}:{seen.line}",
    }
