"""The page: one HTML file with its style, its script and the document, and nothing from anywhere else."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rmqtool.output.jsonrows import encode
from rmqtool.output.sizes import human_bytes
from rmqtool.report import sections
from rmqtool.report.html import Markup, data, digest, embedded, joined, number, tag
from rmqtool.report.plots import COLOURS, STATE_TEXTS, bars, classes, share, strip, swatch
from rmqtool.report.sections import Values, facts, section, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.output.times import Zone

    Row = dict[str, Any]

_FOLDED = 12
"""so many neighbouring segments without damage, of a long log, are folded into one line"""
_LONG = 48
"""segments of a log that is drawn whole"""


def page(document: Row, zone: Zone) -> bytes:
    """The file, in UTF-8."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    script = files(__package__).joinpath("script.js").read_text(encoding="utf-8")
    coloured = classes(_largest(document))
    shown = {"schema": "rmqtool.report/1", **document, "page": {"topics": list(coloured)}}
    policy = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    values = Values(document, zone)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Incident record: {document['store']}"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        _header(values),
        sections.verdict(values),
        sections.summary(values),
        sections.findings(values),
        _map(values, coloured),
        _volume(values),
        _topics(values, coloured),
        _groups(values),
        sections.start(values),
        sections.plan(values),
        sections.journals(values),
        sections.uncovered(values),
        embedded(encode(shown).decode()),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n".encode()


def _largest(document: Row) -> list[str]:
    topics = document["map"]["summary"]["topics"]
    return sorted(topics, key=lambda name: (-topics[name], name))[:COLOURS]


def _header(values: Values) -> Markup:
    document = values.document
    said = [
        tag("p", tag("code", data(document["store"]))),
        tag(
            "p",
            "Made ", values.time("created_timestamp"), " by rmqtool ", document["tool_version"],
            ". Times are those of ", values.zone.name, ".",
            class_="dim",
        ),
    ]  # fmt: skip
    if document["redaction"]:
        said.append(tag("p", f"Redacted: {', '.join(document['redaction'])}.", class_="dim"))
    if not document["complete"]:
        said.append(tag("p", "Not everything could be read or looked at; see the end.", class_="warning"))
    return tag("header", tag("h1", "Incident record"), *said)


def _map(values: Values, coloured: dict[str, str]) -> Markup:
    rows = values.document["map"]["rows"]
    if not rows:
        return section("Map of the commit log", tag("p", "There are no segments."))
    drawn = [*_strips(rows, coloured)]
    zoom = tag(
        "div",
        tag("h3", ""),
        tag("svg", preserveAspectRatio="none", role="img", aria_label="The segment, enlarged"),
        tag("p", "", class_="at", aria_live="polite"),
        *(
            tag("button", name, type="button", value=step)
            for name, step in (
                ("Zoom in", "in"), ("Zoom out", "out"), ("Whole segment", "all"),
                ("←", "left"), ("→", "right"), ("Close", "close"),
            )
        ),
        id="zoom",
        hidden=True,
    )  # fmt: skip
    hint = "A place with any damage is drawn as damage. Choose a segment to enlarge it."
    return section(
        "Map of the commit log",
        tag("p", hint, class_="dim screen"),
        tag("div", *drawn, class_="map"),
        _legend(values, coloured),
        zoom,
    )


def _strips(rows: list[Row], coloured: dict[str, str]) -> Iterator[Markup]:
    """All rows; of a long log, neighbours without damage folded."""
    waiting: list[tuple[int, Row]] = []
    for at, row in enumerate(rows):
        if len(rows) > _LONG and row["type"] == "segment" and row["cells"] and not row["damaged_bytes"]:
            waiting.append((at, row))
            continue
        yield from _folded(waiting, coloured)
        waiting = []
        if row["type"] == "missing":
            start, end = row["physical_offset"], row["physical_offset"] + row["length"]
            yield tag("div", f"missing: {number(start)} to {number(end)}", class_="gone")
        elif row["cells"] is None:
            harm = row["damaged_bytes"]
            yield _line(row, f"not drawn, {human_bytes(harm)} damaged" if harm else "not drawn, no damage")
        else:
            yield from _strip(at, row, coloured)
    yield from _folded(waiting, coloured)


def _folded(waiting: list[tuple[int, Row]], coloured: dict[str, str]) -> Iterator[Markup]:
    """Segments without damage: of a long row of them the first, the last, and how many lie between."""
    if len(waiting) <= _FOLDED:
        for at, row in waiting:
            yield from _strip(at, row, coloured)
        return
    size = human_bytes(sum(row["size"] for _, row in waiting[1:-1]))
    yield from _strip(*waiting[0], coloured)
    yield tag("div", f"{len(waiting) - 2:,} segments without damage ({size})", class_="folded")
    yield from _strip(*waiting[-1], coloured)


def _line(row: Row, note: str) -> Markup:
    return joined(
        [
            tag("div", number(row["segment"]), class_="off"),
            tag("div", note, class_="dim"),
            tag("div", human_bytes(row["size"])),
        ]
    )


def _strip(at: int, row: Row, coloured: dict[str, str]) -> Iterator[Markup]:
    label = f"{row['path']}: {number(row['records'])} records, {number(row['damaged_bytes'])} bytes damaged"
    found = row["findings"]
    mark = f" · {number(found)} finding{'' if found == 1 else 's'}" if found else ""
    yield tag("div", number(row["segment"]), class_="off")
    yield tag(
        "button",
        strip(row, coloured),
        type="button", class_="cell", data_row=at, title=label, aria_label=label, disabled=True,
    )  # fmt: skip
    yield tag("div", human_bytes(row["size"]), tag("span", mark, class_="mark"))


def _legend(values: Values, coloured: dict[str, str]) -> Markup:
    found = values.document["map"]["summary"]
    items = [
        (class_, data(name), count) for name, class_ in coloured.items() if (count := found["topics"][name])
    ]
    others = sum(count for name, count in found["topics"].items() if name not in coloured)
    others += found["other_topics"] or 0
    if others:
        items.append(("other", Markup("all other topics"), others))
    items += [(f"s-{name}", Markup(STATE_TEXTS[name]), count) for name, count in found["states"].items()]
    shown = (
        tag("span", swatch(class_), " ", name, " ", tag("span", human_bytes(count), class_="dim"))
        for class_, name, count in items
    )
    return tag("div", *shown, class_="legend")


def _volume(values: Values) -> Markup:
    found = values.document["volume"]
    if not found["messages"]:
        return section("Volume", tag("p", "There are no messages."))
    start, step = found["from_timestamp"], found["interval_ms"]
    times = [values.zone.iso(start + at * step) for at in range(len(found["messages"]))]
    ends = tag(
        "div",
        tag("span", times[0]),
        tag("span", values.zone.iso(start + len(times) * step)),
        class_="ends",
    )
    outside = None
    if found["outside"]:
        outside = tag(
            "p", values.number("volume.outside"), " messages have times outside of this.", class_="dim"
        )
    return section(
        "Volume over time",
        tag("p", f"An interval is {_length(step)}.", class_="dim"),
        tag("h3", f"Messages, at most {number(max(found['messages']))} in an interval"),
        bars(found["messages"], _titles(times, map(number, found["messages"])), "Messages over time"),
        ends,
        tag("h3", f"Bytes, at most {human_bytes(max(found['bytes']))} in an interval"),
        bars(found["bytes"], _titles(times, map(human_bytes, found["bytes"])), "Bytes over time"),
        ends,
        outside,
    )


def _titles(times: list[str], values: Any) -> list[str]:
    return [f"{time}: {value}" for time, value in zip(times, values, strict=True)]


def _length(step: int) -> str:
    seconds = step // 1000
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {name}s"
    return f"{seconds:,} second{'' if seconds == 1 else 's'}"


def _topics(values: Values, coloured: dict[str, str]) -> Markup:
    rows = [{**row, "at": at} for at, row in enumerate(values.document["topics"])]
    if not rows:
        return section("Topics", tag("p", "There are no messages."))
    columns: list[tuple[str, bool, Any]] = [
        ("", False, lambda row: swatch(coloured.get(row["topic"], "other"))),
        ("topic", False, lambda row: data("(not UTF-8)" if row["topic"] is None else row["topic"])),
        ("messages", True, lambda row: values.number(f"topics.{row['at']}.messages")),
        ("bytes", True, lambda row: values.size(f"topics.{row['at']}.bytes")),
        ("share", False, lambda row: share(row["share"] or 0)),
        ("first", False, lambda row: values.zone.moment(row["first_timestamp"])),
        ("last", False, lambda row: values.zone.moment(row["last_timestamp"])),
    ]
    more = sections.left_out(values.document["left_out"].get("topics", 0), "topics are")
    return section("Topics", table(columns, rows), more)


def _groups(values: Values) -> Markup:
    rows = [{**row, "at": at} for at, row in enumerate(values.document["groups"])]
    if not rows:
        return section("Consumer groups", tag("p", "No consumer group has committed an offset."))

    def lag(row: Row) -> object:
        return "no queue" if row["lag"] is None else values.number(f"groups.{row['at']}.lag")

    columns: list[tuple[str, bool, Any]] = [
        ("group", False, lambda row: data(row["group"])),
        ("topic", False, lambda row: data(row["topic"])),
        ("queue", True, lambda row: row["queue_id"]),
        ("committed", True, lambda row: values.number(f"groups.{row['at']}.offset")),
        ("end", True, lambda row: "" if row["max_offset"] is None else number(row["max_offset"])),
        ("lag", True, lag),
    ]
    more = sections.left_out(values.document["left_out"].get("groups", 0), "queues of groups are")
    total = facts([("queues with an offset", number(len(rows)))])
    return section("Consumer groups and lag", total, table(columns, rows), more)
