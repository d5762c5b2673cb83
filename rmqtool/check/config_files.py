"""`config/*.json`: what a broker would load of each file, and what `.bak` offers (`ConfigManager#load`)."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from rmqtool.check.findings import Severity, finding
from rmqtool.store.config_json import (
    ParsedConfig,
    ParseState,
    for_types,
    lost_to_backup,
    parse_table,
    read_listed,
)
from rmqtool.store.config_types import misfits, misnamed
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.store.layout import Store


_TOPICS = "config/topics.json"
_BESIDE = ("consumerOffset", "lmqConsumerOffset", "subscriptionGroup")
"""a broker writes them, a store that only producers of the library used has none"""


class View(Enum):
    """What a broker makes of one file."""

    LOADS = auto()
    NOTHING = auto()
    """parsed, and read as an empty table: `null`, `[]`"""
    EMPTY = auto()
    """no bytes; counts as missing"""
    UNPARSABLE = auto()
    DEPENDS = auto()
    """one release loads it or an empty table, another takes it for unparsable"""
    MISSING = auto()
    UNREADABLE = auto()


_VERSION = re.compile(rb'"dataVersion"\s*:\s*[\[{][^\[\]{}]*[\]}]\s*,?')


def view(parsed: ParsedConfig, raw: bytes, name: str) -> View:
    """As observed with 4.9.7 and 5.3.3. raw: bytes of the file. name: of the table, without `.bak`."""
    state, detail = parsed.state, parsed.detail or ""
    if state is ParseState.MISSING:
        return View.MISSING
    if state is ParseState.UNREADABLE:
        return View.UNREADABLE
    if state is ParseState.EMPTY:
        return View.EMPTY if not raw else View.UNPARSABLE if b"\0" in raw else View.DEPENDS
    if state is ParseState.UNPARSABLE:
        if detail.startswith(("holds a list", "holds null")):
            return View.NOTHING
        # the table behind a broken dataVersion is loaded by some, given up by others
        beside = _VERSION.sub(b"", raw, count=1)
        return View.DEPENDS if beside != raw and parse_table(beside, name).state.has_data else View.UNPARSABLE
    # fastjson forgives a byte order mark, NUL bytes at the end, single quotes, but no other text behind
    if "bytes follow behind" in detail:
        return View.UNPARSABLE
    return View.NOTHING if misnamed(name, parsed.data) else View.LOADS


def check_config(store: Store) -> Iterator[Finding]:
    """Findings about every configuration file of the store that has the load rule of `ConfigManager`."""
    names = {file.path.removesuffix(".bak") for file in store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK)}
    for name in sorted(names | {file.path for file in store.of_kind(FileKind.TIMERMETRICS)}):
        counts = name.rpartition("/")[2] == "timermetrics"  # which a broker makes anew, if it starts
        yield from (one for one in _pair(store, name) if not counts or one.code == "CFG-REFUSED")


def check_table(store: Store, topics_on_disk: int) -> Iterator[Finding]:
    """Queues, and what a broker writes beside its topic table, but no topic table at all."""
    if store.file(_TOPICS) is not None or store.file(_TOPICS + ".bak") is not None:
        return
    beside = any(store.file(f"config/{name}.json") is not None for name in _BESIDE)
    in_rocksdb = any(file.path.startswith("config/") for file in store.of_kind(FileKind.ROCKSDB))
    if beside and topics_on_disk and not in_rocksdb:
        yield finding("CFG-NO-TABLE", path=_TOPICS, found=topics_on_disk)


def _pair(store: Store, name: str) -> Iterator[Finding]:
    primary, own = _load(store, name)
    backup, other = _load(store, name + ".bak")
    place: dict[str, Any] = {"path": escape_name(name)}
    why = primary.detail or own.name.lower()
    if own is View.UNREADABLE:
        yield finding("CFG-UNREADABLE", **place, found=why)
    elif own is View.NOTHING:
        yield finding("CFG-NOTHING", **place, found=why, expected=_offer(backup, other))
    elif own is View.DEPENDS:
        yield finding("CFG-DEPENDS", **place, found=why, expected=_offer(backup, other))
    elif own is other is View.LOADS and lost_to_backup(primary.data, backup.data):
        yield finding("CFG-NOTHING", **place, found="it has no entries", expected=_offer(backup, other))
    elif own is View.LOADS:
        if primary.state is ParseState.LENIENT:
            yield finding("CFG-ODD", **place, found=why)
        if other is View.UNPARSABLE:
            yield finding("CFG-BAK", path=escape_name(name + ".bak"), found=backup.detail)
    elif other is View.LOADS:
        yield finding("CFG-PRIMARY", **place, found=why, expected=_offer(backup, other))
    elif other in (View.UNPARSABLE, View.UNREADABLE):
        yield finding("CFG-REFUSED", **place, found=why, expected=backup.detail)
    elif other is View.DEPENDS:
        yield finding("CFG-DEPENDS", **place, found=f".bak {backup.detail}", expected="nothing")
    elif other is View.NOTHING or own is not View.MISSING:
        yield finding("CFG-LOST", **place, found=why)
    else:
        yield finding("CFG-LOST", **place, found="missing, and .bak is empty", severity=Severity.NOTE)


def _load(store: Store, name: str) -> tuple[ParsedConfig, View]:
    parsed, raw = read_listed(store.file(name))
    table = name.rpartition("/")[2].removesuffix(".bak")
    data = for_types(raw, parsed) if parsed.state.has_data else None
    by_one = (next(misfits(table, data, before_5=one), None) for one in (True, False))
    wrong = next((one for one in by_one if one is not None), None) if parsed.state.has_data else None
    if wrong is not None:  # `read_listed` gives no data where every release refuses
        return parsed._replace(detail=str(wrong)), View.DEPENDS
    return parsed, view(parsed, raw, table)


def _offer(backup: ParsedConfig, other: View) -> str:
    if other is not View.LOADS or not isinstance(backup.data, dict):
        return "nothing"
    tables = [f"{len(value)} in {key}" for key, value in backup.data.items() if isinstance(value, dict)]
    return ", ".join(tables) or "an empty object"
