"""The sections of the page about the store's state: verdict, findings, what would be and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.report.html import Markup, data, joined, number, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rmqtool.output.times import Zone

    Row = dict[str, Any]
    Cell = Callable[[Row], object]


class Values:
    """Numbers of the document by their place in it, so that page and document cannot differ.

    A place is keys and list indices with dots between; the element has it as `data-key`.
    """

    def __init__(self, document: Row, zone: Zone) -> None:
        self.document, self.zone = document, zone

    def at(self, place: str) -> Any:
        """What the document has there."""
        found: Any = self.document
        for key in place.split("."):
            found = found[int(key)] if isinstance(found, list) else found[key]
        return found

    def number(self, place: str) -> Markup:
        """A number."""
        return self._element(place, number(self.at(place)))

    def size(self, place: str) -> Markup:
        """A number of bytes, rounded."""
        return self._element(place, human_bytes(int(self.at(place))))

    def time(self, place: str) -> Markup:
        """A time, epoch ms in the document."""
        value = self.at(place)
        return self._element(place, self.zone.moment(value) if value is not None else "unknown")

    def _element(self, place: str, shown: str) -> Markup:
        return tag("data", shown, value=self.at(place), data_key=place)


def table(columns: Sequence[tuple[str, bool, Cell]], rows: Iterable[Row]) -> Markup:
    """Rows with a heading. columns: name, whether it is a number, and what of a row stands in it."""
    heads = (tag("th", name, class_="n" if numeric else None) for name, numeric, _ in columns)
    lines = (
        tag("tr", *(tag("td", cell(row), class_="n" if numeric else None) for _, numeric, cell in columns))
        for row in rows
    )
    return tag("div", tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines)), class_="wide")


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Names and values."""
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts"
    )


def section(title: str, *content: object) -> Markup:
    """A section under its heading."""
    return tag("section", tag("h2", title), *content)


def left_out(count: int, what: str) -> Markup | None:
    """What a list does not have."""
    return tag("p", f"{count:,} more {what} not listed here.", class_="dim") if count > 0 else None


def verdict(values: Values) -> Markup:
    """The verdict, and what to do next."""
    document = values.document
    doctor = document["doctor"]
    steps = [
        tag("li", tag("code", data(one["command"])), tag("br"), tag("span", one["why"], class_="dim"))
        for one in doctor["advice"]
    ]
    return joined(
        [
            tag("p", tag("strong", document["headline"]), class_=f"verdict {doctor['verdict']}"),
            tag("h3", "Do next") if steps else None,
            tag("ol", *steps, class_="do") if steps else None,
        ]
    )


def summary(values: Values) -> Markup:
    """The figures of the store."""
    found = values.document
    severities = found["verify"]["by_severity"]
    pairs: list[tuple[str, object]] = [
        ("messages", values.number("stats.messages")),
        ("size of messages", values.size("stats.bytes")),
        ("topics", values.number("stats.topics")),
        ("segments", values.number("map.summary.segments")),
        ("damaged in the log", values.size("map.summary.damaged_bytes")),
        *((f"{name}s", values.number(f"verify.by_severity.{name}")) for name in severities),
    ]
    if found["stats"]["first_timestamp"] is not None:
        pairs.append(("first message", values.time("stats.first_timestamp")))
        pairs.append(("last message", values.time("stats.last_timestamp")))
    return facts(pairs)


def findings(values: Values) -> Markup:
    """Findings by cause."""
    groups = values.document["verify"]["groups"]
    if not groups:
        return section(
            "Findings", tag("p", "No findings: every record and every entry that was checked is right.")
        )
    return section("Findings by cause", *(_group(values, at, group) for at, group in enumerate(groups)))


def _group(values: Values, at: int, group: Row) -> Markup:
    severity, first = group["severity"], group["first"]
    head = tag(
        "summary",
        tag("span", severity, class_=severity),
        " ",
        tag("strong", group["cause"]),
        ": ",
        values.number(f"verify.groups.{at}.findings"),
        " finding" if group["findings"] == 1 else " findings",
    )
    codes = ", ".join(f"{code} {count:,}" for code, count in group["by_code"].items())
    columns: list[tuple[str, bool, Cell]] = [
        ("severity", False, lambda row: tag("span", row["severity"], class_=row["severity"])),
        ("code", False, lambda row: tag("span", row["code"], class_="code")),
        ("place", False, _place),
        ("finding", False, lambda row: data(row["message"])),
    ]
    return tag(
        "details",
        head,
        tag("p", codes, class_="dim") if len(group["by_code"]) > 1 else None,
        tag("p", group["hint"]) if group["hint"] else None,
        table(columns, first),
        left_out(group["findings"] - len(first), "findings of this cause are"),
        open=severity != "note",
    )


def _place(row: Row) -> Markup:
    where = [data(row["path"] or "the store")]
    if row.get("position") is not None:
        where.append(tag("span", f" at {row['position']:,}", class_="dim"))
    return tag("span", *where, class_="path")


def start(values: Values) -> Markup:
    """What a start would do, beyond the verdict."""
    doctor = values.document["doctor"]
    pairs: list[tuple[str, object]] = [
        ("release", doctor["version"]),
        ("releases considered", ", ".join(doctor["versions_considered"])),
        ("recovery", doctor["mode"]),
        ("starts", {True: "yes", False: "no", None: "not certain"}[doctor["starts"]]),
        ("stops at", "–" if doctor["stop_offset"] is None else values.number("doctor.stop_offset")),
    ]
    if doctor["loss"]:
        pairs.append(("messages lost", values.number("doctor.loss.messages")))
    harmed = [
        row
        for row in doctor["queues"]
        if any(row[name] for name in ("misplaced", "lost", "repeated", "hidden"))
    ]
    columns: list[tuple[str, bool, Cell]] = [
        ("topic", False, lambda row: data(row["topic"])),
        ("queue", True, lambda row: row["queue_id"]),
        ("wrong slot", True, lambda row: number(row["misplaced"])),
        ("truncated", True, lambda row: number(row["lost"])),
        ("offset reused", True, lambda row: number(row["repeated"])),
        ("unreachable", True, lambda row: number(row["hidden"])),
    ]
    lists = [_listed("Deleted by the start", doctor["deletes"])]
    lists.append(_listed("Truncated", [f"{one['path']} at {one['position']}" for one in doctor["truncates"]]))
    lists.append(
        _listed("Consequences", [f"{one['code']}: {one['message']}" for one in doctor["consequences"]])
    )
    lists.append(_listed("Damaged already", doctor["already_damaged"]["paths"]))
    return section(
        "What a start would do",
        facts(pairs),
        *lists,
        tag("h3", "Affected queues") if harmed else None,
        table(columns, harmed) if harmed else None,
    )


def _listed(title: str, names: Sequence[str]) -> Markup | None:
    if not names:
        return None
    return joined([tag("h3", title), tag("ul", *(tag("li", data(one), class_="path") for one in names))])


_CHANGE: list[tuple[str, bool, Any]] = [
    ("action", False, lambda row: row["action"]),
    ("path", False, lambda row: tag("span", data(row["path"]), class_="path")),
    ("position", True, lambda row: "" if row.get("position") is None else number(row["position"])),
    ("length", True, lambda row: "" if row.get("length") is None else number(row["length"])),
    ("why", False, lambda row: row["why"]),
    ("change", False, lambda row: data(row["message"])),
]


def plan(values: Values) -> Markup:
    """The plan of `recover`, as it would be."""
    found = values.document["plan"]
    if not found["made"]:
        return section("Plan", tag("p", "Not made: ", data(found["why"])))
    if not found["rows"]:
        return section("Plan", tag("p", "recover has nothing to change."))
    return section(
        "Plan of recover",
        tag("p", "Nothing was changed. recover checks the result of its plan before it is carried out; that "
            "was not done here.", class_="dim"),
        _changes(values, "plan", found),
    )  # fmt: skip


def _changes(values: Values, place: str, found: Row) -> Markup:
    known = [name for name in ("saved", "lost") if found[name]["messages"] is not None]
    pairs: list[tuple[str, object]] = [
        ("plan", found["plan_id"]),
        ("changes", values.number(f"{place}.changes")),
        *((f"messages {name}", values.number(f"{place}.{name}.messages")) for name in known),
    ]
    return joined(
        [
            facts(pairs),
            *(tag("p", data(note)) for note in found["notes"]),
            table(_CHANGE, found["rows"]),
            left_out(found["changes_left_out"], "changes are"),
        ]
    )


def journals(values: Values) -> Markup | None:
    """What was done, from undo journals."""
    found = values.document["journals"]
    if not found:
        return None
    return section("What was done", *(_journal(values, at, one) for at, one in enumerate(found)))


def _journal(values: Values, at: int, found: Row) -> Markup:
    place = f"journals.{at}"
    return joined(
        [
            tag("h3", f"rmqtool {found['command']}, ", values.time(f"{place}.created_timestamp")),
            tag("p", "Phase: ", found["phase"], ". Journal: ", tag("code", data(found["journal"]))),
            _changes(values, place, found),
        ]
    )


def uncovered(values: Values) -> Markup | None:
    """What the record does not cover, and what it leaves out."""
    document = values.document
    rows = [*document["verify"].get("not_covered", []), *document["map"]["summary"].get("not_covered", [])]
    texts = [f"{row['path']}: {row.get('error') or row['reason']}" for row in rows]
    texts += [f"not looked at: {one}" for one in document["doctor"]["not_looked_at"]]
    texts += [f"{count:,} entries of {place} are left out" for place, count in document["left_out"].items()]
    texts = list(dict.fromkeys(texts))
    if not texts:
        return None
    return section(
        "Not covered",
        tag("ul", *(tag("li", data(one)) for one in texts[:100])),
        left_out(len(texts) - 100, "are"),
    )
