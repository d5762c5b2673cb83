"""What each configuration file would load as (`ConfigManager#load`, `#loadBak`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rmqtool.check.config_files import View, view
from rmqtool.errors import RmqtoolError
from rmqtool.store.config_json import ParseState, lost_to_backup, parse_table
from rmqtool.store.config_types import misnamed
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from rmqtool.broker.traits import Traits
    from rmqtool.store.config_json import ParsedConfig
    from rmqtool.store.layout import Store

TIMER_COUNTS = "config/timermetrics"
_LISTED_VERSION = re.compile(rb'("dataVersion"\s*:\s*)\[([^\[\]{}]*)\}')


class Loads(StrEnum):
    """Where a table comes from."""

    PRIMARY = "primary"
    BAK = "bak"
    EMPTY = "empty"
    """nowhere: the broker starts with nothing in it"""
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True)
class ConfigOutcome:
    """path: relative to the root. loads: where the table comes from.

    loses: the younger or only content is not what the broker starts with.
    """

    path: str
    loads: Loads
    loses: bool = False


def config_view(name: str, raw: bytes | None, traits: Traits) -> View:
    """What a broker makes of one file. raw: its bytes, None without it. name: the table's, without `.bak`."""
    return _read(name, raw, traits)[0]


def _read(name: str, raw: bytes | None, traits: Traits) -> tuple[View, Any]:
    """The same, and the table that is in the file."""
    if raw is None:
        return View.MISSING, None
    parsed = parsed_by(name, raw, traits)
    if parsed.state is ParseState.EMPTY and raw and b"\0" not in raw and name in traits.blank_tables:
        return View.NOTHING, None
    seen = view(parsed, raw, name)
    if seen is View.DEPENDS:  # on the release, which is known here
        seen = View.UNPARSABLE
    return View.NOTHING if seen is View.LOADS and not parsed.data else seen, parsed.data


def parsed_by(name: str, raw: bytes, traits: Traits) -> ParsedConfig:
    """What a broker of the release reads of the bytes of the table `name`."""
    if name in traits.listed_versions:
        raw = _LISTED_VERSION.sub(rb"\1{\2}", raw)
    return parse_table(raw, name, before_5=not traits.tables_of_5)


def loads_as(primary: View, backup: View, own_data: Any = None, backup_data: Any = None) -> Loads:
    """Where the table comes from, by what a broker makes of a file and of its `.bak`.

    With what is in them: nowhere where the file has nothing that its `.bak` has.
    """
    if primary is backup is View.LOADS and lost_to_backup(own_data, backup_data):
        return Loads.EMPTY
    for own, source in ((primary, Loads.PRIMARY), (backup, Loads.BAK)):
        if own is View.LOADS:
            return source
        if own is View.NOTHING:
            return Loads.EMPTY
    return Loads.REFUSES if backup in (View.UNPARSABLE, View.UNREADABLE) else Loads.EMPTY


def config_outcomes(store: Store, traits: Traits) -> list[ConfigOutcome]:
    """Every configuration table in `config/`, by name; counts of timers where a broker ends over them."""
    files = store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK, FileKind.TIMERMETRICS)
    found = (
        _outcome(store, name, traits) for name in sorted({one.path.removesuffix(".bak") for one in files})
    )
    return [
        one
        for one in found
        if one.path != TIMER_COUNTS or (one.loads is Loads.REFUSES and traits.timer_wheel)
    ]


def _outcome(store: Store, name: str, traits: Traits) -> ConfigOutcome:
    (primary, own), (backup, other) = (_view(store, path, name, traits) for path in (name, name + ".bak"))
    loads = loads_as(primary, backup, own, other)
    loses = loads is Loads.BAK and primary is not View.MISSING
    first, path = (backup, name + ".bak") if primary is View.MISSING else (primary, name)
    nothing = first is View.MISSING or (first is View.NOTHING and _written_empty(store, path, name))
    nothing &= backup in {View.MISSING, View.EMPTY, View.NOTHING}
    loses |= loads is Loads.EMPTY and not nothing
    return ConfigOutcome(escape_name(name), loads, loses)


def _written_empty(store: Store, path: str, name: str) -> bool:
    """Whether a file that loads as an empty table is one: no broker writes `null`, `[]` or blanks."""
    file, table = store.file(path), name.rpartition("/")[2]
    if file is None:
        return False
    parsed = parse_table(read_whole(file), table)
    return parsed.state.has_data and misnamed(table, parsed.data) is None


def _view(store: Store, path: str, name: str, traits: Traits) -> tuple[View, Any]:
    file = store.file(path)
    if file is None:
        return View.MISSING, None
    try:
        raw = read_whole(file)
    except RmqtoolError:
        return View.UNREADABLE, None
    return _read(name.rpartition("/")[2], raw, traits)
