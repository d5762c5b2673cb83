"""A closing summary in sentences: what was found, what it is about, whether it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.times import age, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.output.times import Zone

_LEFT_OUT = frozenset(
    {
        "schema",
        "type",
        "complete",
        "incomplete_reason",
        "by_severity",
        "version_source",
        "verdict",
        "keep",
        "why",
    }
)
MOST = 8
"""places not covered that are named one by one"""
_ALWAYS = frozenset({"messages", "records", "rows", "findings", "changes"})
"""counts that answer what was asked: none of them is said; of others nothing is said where there are none"""
_WORDS = {
    "bad_crc": "bodies with a bad CRC",
    "queue_id": "queue",
    "index_items_without_record": "index entries without record",
    "stores_failed": "failed stores",
    "halves": "half messages",
    "open": "open transactions",
    "ops": "op messages",
    "ops_without_half": "op messages without half message",
    "internal_messages": "messages of internal topics",
    "internal_bytes": "bytes of internal topics",
    "log_bytes": "bytes of log files",
    "disk_bytes": "bytes on disk",
}
_RANGES = {
    "first_offset": ("end_offset", "physical offsets"),
    "first_timestamp": ("last_timestamp", "stored"),
}
"""values that are shown with another one, as a range"""


def describe(summary: Mapping[str, Any], zone: Zone | None = None) -> str:
    """A summary for people, its numbers as in JSON: counts, then what else is known, then its state.

    What is zero is not mentioned, but for what was asked: "No messages." Times are ISO 8601 in `zone`.
    """
    zone = zone or zone_of("UTC")
    counts = list(_counts(summary))
    facts = list(_facts(summary, zone))
    return " ".join([*map(_sentence, filter(None, (", ".join(counts), ", ".join(facts)))), _state(summary)])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _is_count(name: str, value: Any) -> bool:
    number = isinstance(value, int) and not isinstance(value, bool)
    return number and not name.endswith(("offset", "timestamp", "_id", "_ms"))


def _counts(summary: Mapping[str, Any]) -> Iterator[str]:
    severities = summary.get("by_severity") or {}
    found = ", ".join(_many(count, f"{name}s") for name, count in severities.items() if count)
    for name, value in summary.items():
        if name in _LEFT_OUT or not _is_count(name, value):
            continue
        words = _WORDS.get(name, name.replace("_", " "))
        if name == "findings" and value and found:
            yield f"{_many(value, words)} ({found})"
        elif value:
            yield _many(value, words)
        elif name in _ALWAYS:
            yield f"no {words}"
    if found and "findings" not in summary:
        yield found


def _facts(summary: Mapping[str, Any], zone: Zone) -> Iterator[str]:
    in_ranges = {last for first, (last, _) in _RANGES.items() if summary.get(first) is not None}
    for name, value in summary.items():
        if name in _LEFT_OUT or name in in_ranges or _is_count(name, value) or value is None:
            continue
        if name == "version":
            source = summary.get("version_source")
            yield f"release {value}" + (f" ({source})" if source else "")
            continue
        if name in _RANGES:
            last, words = _RANGES[name]
            end = summary.get(last)
            yield f"{words} {_value(name, value, zone)}" + (
                "" if end is None else f" to {_value(last, end, zone)}"
            )
        elif isinstance(value, bool):
            if value:
                yield _WORDS.get(name, name.replace("_", " "))
        elif name == "seconds":
            yield f"in {value:.3g} s"
        elif not isinstance(value, (list, dict)) and value != "":
            words = _WORDS.get(name, name.removesuffix("_timestamp").removesuffix("_ms").replace("_", " "))
            yield f"{words} {_value(name, value, zone)}"


def _value(name: str, value: Any, zone: Zone) -> str:
    if not isinstance(value, int):
        return str(value)
    return (
        zone.iso(value) if name.endswith("timestamp") else age(value) if name.endswith("_ms") else str(value)
    )


def _state(summary: Mapping[str, Any]) -> str:
    if summary["complete"]:
        return "Complete."
    rows = [row for row in summary.get("not_covered", ()) if "error" not in row]
    left = "; ".join(map(_left, rows[:MOST])) + (f"; and {len(rows) - MOST:,} more" * (len(rows) > MOST))
    reason = f"Incomplete ({summary['incomplete_reason']})"
    return f"{reason}, left: {left}." if left else f"{reason}."


def _left(row: Mapping[str, Any]) -> str:
    """Where reading stopped; what could not be read has a warning of its own."""
    if "messages" in row and "length" not in row:
        return f"{_many(row['messages'], 'messages')} in {row['path']}"
    at = row.get("position", row.get("physical_offset"))
    start = "" if at is None else f" from {at} on"
    length = f", {_many(row['length'], 'bytes')}" if "length" in row else ""
    files = f" in {_many(row['files'], 'files')}" if "files" in row else ""
    return f"{row['path']}{start}{length}{files}"


def _many(count: int, words: str) -> str:
    return f"{count:,} {words if count != 1 else _singular(words)}"


def _singular(words: str) -> str:
    """Of a plural noun, perhaps with words around it: keys not found, internal messages."""
    parts = words.split()
    for number, word in enumerate(parts):
        if word.endswith("s") and not word.endswith("ss"):
            parts[number] = f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
            break
    return " ".join(parts)
