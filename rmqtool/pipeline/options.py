"""Options of the data source as data."""

from __future__ import annotations

import glob
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rmqtool.errors import UsageError, VanishedError
from rmqtool.pipeline.types import TABLES
from rmqtool.query.message_filter import MessageFilter
from rmqtool.store.remote.address import (
    address_of,
    failures,
    file_system,
    is_remote,
    refuse_ambiguous,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.coverage import Row

UNREADABLE = ("fail", "skip")
_OF_MESSAGES = ("from", "to", "offset_range")
_OF_TOPICS = ("messages", "consumequeue")
_KNOWN = (
    "path", "paths", "table", "columns", "topic", "from", "to", "offset_range", "part_bytes", "unreadable",
    "store_config", "pushdown", "report",
)  # fmt: skip


@dataclass(frozen=True)
class SourceOptions:
    """What is read: of which stores, which table, columns and messages, in which pieces.

    part_bytes: see `parts.log_parts`. unreadable: what becomes of bytes that cannot be read, `fail` or
    `skip`. pushdown: whether the reader takes filters. report: where skipped ranges are reported
    (`notes.Listener`). matched: those of `paths` that a pattern stands for. left_out: rows of `not_covered`
    for what a pattern matched and is not a store.
    """

    paths: tuple[str, ...]
    table: str = "messages"
    columns: tuple[str, ...] | None = None
    wanted: MessageFilter = field(default_factory=MessageFilter)
    part_bytes: int | None = None
    unreadable: str = "fail"
    store_config: str | None = None
    pushdown: bool = False
    report: str | None = None
    matched: frozenset[str] = frozenset()
    left_out: tuple[Row, ...] = ()

    @property
    def config(self) -> StoreConfig | None:
        """The broker.conf given."""
        from rmqtool.store.config import load_broker_conf

        return None if self.store_config is None else load_broker_conf(self.store_config)


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """The options of `spark.read`; raises `UsageError` for what is unknown or cannot be meant."""
    unknown = [name for name in given if name.lower() not in _KNOWN]
    if unknown:
        raise UsageError(f"option {unknown[0]}: the source rocketmq has {', '.join(_KNOWN[2:-1])}")
    options = {name.lower(): value for name, value in given.items()}
    table = options.get("table", "messages")
    if table not in TABLES:
        raise UsageError(f"table {table}: must be one of: {', '.join(TABLES)}")
    for name in _OF_MESSAGES:
        if name in options and table != "messages":
            raise UsageError(f"option {name} does not apply to the table {table}")
    if "topic" in options and table not in _OF_TOPICS:
        raise UsageError(f"option topic does not apply to the table {table}")
    unreadable = options.get("unreadable", "fail")
    if unreadable not in UNREADABLE:
        raise UsageError(f"option unreadable: {unreadable} is neither of {', '.join(UNREADABLE)}")
    return SourceOptions(
        paths=expand(_paths(options)),
        table=table,
        columns=_names(options.get("columns")),
        wanted=_wanted(options),
        part_bytes=_number("part_bytes", options.get("part_bytes")),
        unreadable=unreadable,
        store_config=options.get("store_config"),
        pushdown=_flag("pushdown", options.get("pushdown", "false")),
        report=options.get("report"),
    )


def expand(paths: Sequence[str]) -> tuple[str, ...]:
    """The stores that are meant: patterns stand for what they match, in order of names.

    Paths are absolute, since tasks run in other directories. Raises `UsageError` for a pattern without a
    match, `VanishedError` for a path that is not there.
    """
    found: list[str] = []
    for one in map(local_path, paths):
        if is_remote(one):
            found += _remote_matches(one)
            continue
        if not is_pattern(one):
            if not os.path.lexists(one):
                raise VanishedError(f"{one}: no such file or directory")
            found.append(os.path.abspath(one))
            continue
        matches = sorted(glob.glob(one))
        if not matches:
            raise UsageError(f"{one} matches nothing")
        found += map(os.path.abspath, matches)
    return tuple(dict.fromkeys(found))


def is_pattern(path: str) -> bool:
    """Whether a path stands for what it matches: there is none of that name."""
    return glob.has_magic(path) and (is_remote(path) or not os.path.lexists(path))


def local_path(path: str) -> str:
    """A path, or what a `file:` address means."""
    if not path.lower().startswith("file:"):
        return path
    try:
        return unquote(urlsplit(path).path)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _remote_matches(place: str) -> list[str]:
    address = address_of(place)
    refuse_ambiguous(address)
    if not glob.has_magic(address):
        return [address]
    scheme = address.partition(":")[0]
    try:
        system = file_system(address)
        if system.exists(address):  # as for paths: a name with such characters in it
            return [address]
        matches = system.glob(address)
    except failures() as error:
        raise refused(address, error) from error
    if not matches:
        raise UsageError(f"{address} matches nothing")
    return [f"{scheme}://{str(one).strip('/')}" for one in sorted(matches)]


def moment(name: str, text: str) -> int:
    """Epoch milliseconds, given as such or in ISO 8601 (UTC where no zone stands)."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"option {name}: '{text}' is neither epoch milliseconds nor ISO 8601") from error
    zoned = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    return round((zoned - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def _paths(options: Mapping[str, str]) -> list[str]:
    if "paths" in options:
        return [str(one) for one in json.loads(options["paths"])]
    if not options.get("path"):
        raise UsageError("no store given: .load(PATH), or option path")
    return [options["path"]]


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(one.strip() for one in text.split(",") if one.strip())


def _wanted(options: Mapping[str, str]) -> MessageFilter:
    low, high = _range(options.get("offset_range", ":"))
    return MessageFilter(
        topics=_names(options.get("topic")) or (),
        store_from=moment("from", options["from"]) if "from" in options else None,
        store_to=moment("to", options["to"]) if "to" in options else None,
        offset_from=low,
        offset_to=high,
    )


def _range(text: str) -> tuple[int | None, int | None]:
    low, colon, high = text.partition(":")
    if not colon:
        raise UsageError(f"option offset_range: '{text}' is not A:B")
    try:
        return (int(low, 0) if low else None), (int(high, 0) if high else None)
    except ValueError as error:
        raise UsageError(f"option offset_range: '{text}' is not A:B") from error


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise UsageError(f"option {name}: '{text}' is not a valid number of bytes")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise UsageError(f"option {name}: '{text}' is neither true nor false")
    return text.lower() == "true"
