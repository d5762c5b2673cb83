"""The inventory of a store as a page for people."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rmqtool.output.page import Page
    from rmqtool.output.times import Zone

Row = dict[str, Any]


class InfoPage:
    """Writes the sections one after the other; sections without content are left out."""

    def __init__(self, page: Page, zone: Zone) -> None:
        self._page = page
        self._zone = zone

    def write(self, reported: Mapping[str, Any]) -> None:
        """`reported` is the document of the command, without its schema."""
        self._store(reported)
        self._list("Totals by kind", reported["totals"], _TOTALS)
        self._release(reported["release"])
        self._sizes(reported["sizes"])
        self._log(reported["commitlog"], reported["segments"])
        self._topics(reported["topics"])
        self._queues(reported["queues"])
        self._index(reported["index"])
        self._config(reported["config"])
        self._list("Unknown files", reported["unknown"], _UNKNOWN)
        self._list("Files", reported["files"], _FILES)
        self._list("Not readable", reported.get("not_covered", ()), _UNREADABLE)
        self._sentences("Not looked at", reported["not_looked_at"])
        self._page.close()

    def _time(self, millis: int | None) -> str | None:
        return None if millis is None else self._zone.iso(millis)

    def _stamp(self, millis: int) -> str:
        return f"{self._zone.iso(millis)} ({millis})" if millis else "0"

    def _store(self, reported: Mapping[str, Any]) -> None:
        self._page.heading("Store")
        lock, abort = reported["lock"], reported["abort"]
        log = reported["commitlog"]
        self._page.facts(
            [
                ("path", reported["store"]),
                ("what", f"{reported['form']} ({reported['form_detail']})"),
                *[("further root", root) for root in reported["roots"][1:]],
                ("lock", _lock(lock)),
                ("abort", _abort(abort)),
                ("first record", self._time(log["first_store_timestamp"])),
                ("last record", self._time(log["last_store_timestamp"])),
                ("time zone", self._zone.name),
            ]
        )
        checkpoint = reported["checkpoint"]
        if checkpoint is not None:
            self._page.heading("Checkpoint")
            self._page.facts(self._checkpoint(checkpoint))
        for one in reported["epoch"]:
            self._page.heading(f"Epochs in {one['path']}")
            held = one.get("entries", ())
            entries = [(f"epoch {item['epoch']}", f"from {item['start_offset']}") for item in held]
            self._page.facts([("error", one.get("error")), ("CRC and count", _valid(one)), *entries])
        for one in reported["broker_identity"]:
            names = ("cluster", "broker", "broker_id", "error")
            self._page.heading(f"Broker identity in {one['path']}")
            self._page.facts([(name, one.get(name)) for name in names])

    def _checkpoint(self, checkpoint: Row) -> Iterable[tuple[str, Any]]:
        for name, value in checkpoint.items():
            if name == "size":
                continue
            yield name, self._stamp(value) if name.endswith("_timestamp") else value

    def _release(self, release: Row) -> None:
        self._page.heading("Release (inferred)")
        mixed = ", traces of several releases" if release["mixed"] else ""
        self._page.line(f"  {release['guess']}{mixed}")
        for one in release["evidence"]:
            against = "" if one["agrees"] else " - disagrees"
            where = f"{one['path']}: " if one["path"] else ""
            self._page.words(f"{where}{one['fact']} ({one['releases']}){against}", "  - ")

    def _sizes(self, sizes: Iterable[Row]) -> None:
        rows = [{**one, "kind": f"  {one['kind']}"} for one in sizes]
        self._list("File sizes", rows, _SIZES)

    def _log(self, log: Row, segments: Iterable[Row]) -> None:
        if not log["segments"]:
            return
        begins = log["min_offset"]
        title = "Commit log" if begins is None else f"Commit log, offsets {begins} to {log['end_offset']}"
        self._list(title, segments, self._segments(several=len(log["roots"]) > 1))
        for hole in log["holes"]:
            size, start = hole["length"], hole["physical_offset"]
            self._page.line(f"  hole: {size} bytes at {start} that no file covers")
        for group in log["twins"]:
            self._page.line(f"  twins, same base offset: {', '.join(group)}")
        for pair in log["overlaps"]:
            self._page.line(f"  overlap: {pair[0]} reaches into {pair[1]}")

    def _segments(self, *, several: bool) -> list[Column]:
        root = [Column("root", right=True)] if several else []
        return [
            *root,
            Column("segment", right=True),
            Column("size", right=True, show=human_bytes),
            Column("first_store_timestamp", "first stored", zone=self._zone),
            Column("end_offset", "data ends", right=True),
            Column("ending", "there"),
            Column("content"),
        ]

    def _topics(self, topics: Iterable[Row]) -> None:
        rows = [{**one, "topic": _topic(one), "config": _topic_config(one)} for one in topics]
        self._list("Topics", rows, _TOPICS)

    def _queues(self, queues: Iterable[Row]) -> None:
        queues = [{**one, "topic": _topic(one)} for one in queues]
        plain = [one for one in queues if "min_offset" in one]
        kinds = {one["kind"] for one in plain}
        for row in plain:
            row["remark"] = _queue_remark(row, several=len(kinds) > 1)
        remarks = any(row["remark"] for row in plain)
        self._list("Queues", plain, _QUEUES if remarks else _QUEUES[:-1])
        other = [one for one in queues if "min_offset" not in one]
        self._list("Queue extensions", other, _EXTENSIONS)

    def _index(self, index: Iterable[Row]) -> None:
        columns = [
            Column("name", "index file"),
            Column("used", right=True),
            Column("slots", right=True),
            Column("items", "entries", right=True),
            Column("geometry_source", "geometry"),
            Column("range", "physical offsets"),
        ]
        rows = []
        for one in index:
            low, high = one.get("begin_physical_offset"), one.get("end_physical_offset")
            span = one.get("error") or f"{low} to {high}"
            used = one.get("index_count")
            name = one["path"].rpartition("/")[2]
            rows.append({**one, "name": name, "used": used and used - 1, "range": span})
        self._list("Index", rows, columns)
        times = [
            Column("name", "index file"),
            Column("begin_timestamp", "first", zone=self._zone),
            Column("end_timestamp", "last", zone=self._zone),
        ]
        filled = [one for one in rows if one.get("begin_timestamp")]
        if filled:
            self._page.line("")
            self._page.table(times, filled)

    def _config(self, config: Iterable[Row]) -> None:
        rows = [{**one, "reported": _config_words(one)} for one in config]
        self._list("Configuration", rows, _CONFIG)

    def _list(self, title: str, rows: Iterable[Row], columns: list[Column]) -> None:
        following = iter(rows)
        first = next(following, None)
        if first is not None:
            self._page.heading(title)
            self._page.table(columns, chain([first], following))

    def _sentences(self, title: str, sentences: list[str]) -> None:
        if sentences:
            self._page.heading(title)
            for sentence in sentences:
                self._page.words(sentence, "  - ")


def _lock(lock: Row) -> str:
    state = {True: "held", False: "free", None: "unknown"}[lock["held"]]
    pid = f" by process {lock['pid']}" if lock["pid"] else ""
    return f"{state}{pid} ({lock['reason']})"


def _abort(abort: Row) -> str:
    if abort["exists"] is None:
        return "not looked at: it lies in the store root"
    if not abort["exists"]:
        return "none: the broker was shut down cleanly, or never ran here"
    if abort.get("error"):
        return f"there: {abort['error']}"
    pid = "" if abort["pid"] is None else f", process {abort['pid']}"
    return f"there{pid}: the broker runs or was not shut down cleanly"


def _valid(epoch: Row) -> str | None:
    return {True: "right", False: "wrong"}.get(epoch.get("valid", ""))


def _topic(row: Row) -> str | None:
    """The topic; bytes of one that is not UTF-8 as escapes."""
    if "topic_hex" in row:
        return bytes.fromhex(row["topic_hex"]).decode(errors="backslashreplace")
    topic: str | None = row["topic"]
    return topic


_PERMISSIONS = {2: "write", 4: "read", 6: "read+write"}


def _topic_config(topic: Row) -> str:
    if not topic["configured"]:
        return "not in topics.json"
    perm = _PERMISSIONS.get(topic["perm"], f"perm {topic['perm']}")
    special = [topic["queue_type"]] if topic["queue_type"] != "SimpleCQ" else []
    special += [topic["cleanup_policy"]] if topic["cleanup_policy"] != "DELETE" else []
    return " ".join([f"{topic['read_queue_nums']}r/{topic['write_queue_nums']}w {perm}", *special])


def _queue_remark(queue: Row, *, several: bool) -> str:
    parts = [queue["kind"]] if several and queue["kind"] != "consumequeue" else []
    parts += [f"{queue['pre_blank']} fillers"] if queue["pre_blank"] else []
    parts += ["expired head"] if queue["expired_head"] else []
    return ", ".join([*parts, *([queue["error"]] if "error" in queue else [])])


def _config_words(config: Row) -> str:
    largest = max(config["entries"].items(), key=lambda entry: entry[1], default=("", 0))
    entries = f"{largest[1]} {largest[0]}" if largest[1] else ""
    loads = f"a broker loads: {config['loads']}" if config["loads"] not in {None, "primary"} else None
    return "; ".join(part for part in (entries, config["detail"], loads) if part)


def _plain(key: str, title: str, show: Callable[[Any], str] | None = None) -> Column:
    return Column(key, title, right=True, show=show)


_SIZES = [
    Column("kind", "  kind"),
    _plain("size", "bytes"),
    _plain("units", "units"),
    Column("source"),
    Column("others", "other lengths", shrinks=True),
]
_TOPICS = [
    Column("topic", shrinks=True, style="cyan", width=20),
    _plain("queues", "queues"),
    _plain("messages", "messages"),
    Column("config", "configuration"),
]
_QUEUES = [
    Column("topic", shrinks=True, style="cyan"),
    _plain("queue_id", "q"),
    _plain("min_offset", "min"),
    _plain("max_offset", "max"),
    _plain("first_physical_offset", "first at"),
    _plain("last_physical_offset", "last at"),
    _plain("files", "files"),
    Column("remark", "", shrinks=True),
]
_EXTENSIONS = [
    Column("topic", shrinks=True, style="cyan"),
    _plain("queue_id", "q"),
    _plain("files", "files"),
    _plain("bytes", "size", human_bytes),
    _plain("disk_bytes", "on disk", human_bytes),
]
_CONFIG = [Column("path"), _plain("size", "size"), Column("state"), Column("reported", "", shrinks=True)]
_UNKNOWN = [_plain("size", "size"), Column("path"), Column("note", "", shrinks=True)]
_FILES = [
    Column("kind", gives=1),
    _plain("size", "size", human_bytes),
    _plain("disk_bytes", "on disk", human_bytes),
    Column("path", shrinks=True, least=60),
]
_TOTALS = [
    Column("kind"),
    _plain("files", "files"),
    _plain("bytes", "bytes"),
    _plain("bytes", "", human_bytes),
    _plain("disk_bytes", "on disk", human_bytes),
]
_UNREADABLE = [Column("path"), Column("error", shrinks=True)]
