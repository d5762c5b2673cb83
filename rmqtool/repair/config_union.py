"""What can still be read of a configuration table and its `.bak`, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.check.config_files import View
from rmqtool.recovery.config_tables import Loads, config_view, loads_as, parsed_by
from rmqtool.repair.config_salvage import Salvaged, salvage_file
from rmqtool.store.config_json import parse_config, read_listed
from rmqtool.store.config_types import misnamed, with_number_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.broker.traits import Traits
    from rmqtool.store.layout import Store

_VERSION = "dataVersion"
_DERIVED = frozenset({_VERSION, "groupTopicMap"})
"""what is not an entry: a broker makes it of the others"""
_STATES = {
    View.LOADS: "ok",
    View.NOTHING: "empty",
    View.EMPTY: "empty",
    View.UNPARSABLE: "unparsable",
    View.DEPENDS: "unparsable",
    View.MISSING: "missing",
    View.UNREADABLE: "unreadable",
}


@dataclass(frozen=True, slots=True)
class United:
    """A table as its file and `.bak` have it together. data: None where nothing can be used.

    own, backup: the front of each. primary, bak: states, as `config check` names them, with their details.
    loads: where a broker takes the table from. lost: entries of `data` that it would not have, by table.
    """

    name: str
    data: dict[str, Any] | None
    own: Salvaged
    backup: Salvaged
    primary: str
    bak: str
    detail: str | None
    loads: Loads
    lost: int

    @property
    def entries(self) -> int:
        """Of all tables in it."""
        return 0 if self.data is None else len(_leaves(self.data))


def united(store: Store, name: str, traits: Traits) -> United:
    """Of the file `name` (with `config/`) as a release reads it.

    The file is younger than its `.bak`: where both have an entry, the file's stays.
    """
    table = name.rpartition("/")[2]
    own, backup = (salvage_file(store, path, traits) for path in (name, f"{name}.bak"))
    views, states, details, parts = [], [], [], []
    for path, found in ((name, own), (f"{name}.bak", backup)):
        file = store.file(path)
        parsed, raw = read_listed(file)
        view = config_view(table, None if file is None else raw, traits)
        if parsed.state == "unreadable":
            view = View.UNREADABLE
        views.append(view)
        empty_table = view is View.NOTHING and parsed.state.has_data and not misnamed(table, parsed.data)
        states.append("ok" if empty_table else _STATES[view])
        details.append(parsed.detail)
        whole = parsed_by(table, raw, traits).data if view is View.LOADS else None
        parts.append(_data(table, found) if whole is None else with_number_keys(table, whole))
    loads = loads_as(*views, *parts)
    data = parts[0] if loads is Loads.PRIMARY else _union(*parts)
    loaded = {Loads.PRIMARY: 0, Loads.BAK: 1}.get(loads)
    has = {} if loaded is None else _leaves(parts[loaded] or {})
    lost = 0 if loads is Loads.PRIMARY else sum(has.get(at) != one for at, one in _leaves(data or {}).items())
    detail = (
        "; ".join(f"{word}{one}" for word, one in zip(("", ".bak "), details, strict=True) if one) or None
    )
    return United(name, data, own, backup, states[0], states[1], detail, loads, lost)


def _data(table: str, found: Salvaged) -> dict[str, Any] | None:
    data = None if found.data is None else with_number_keys(table, parse_config(found.data).data)
    return data if isinstance(data, dict) else None


def _union(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or second is None:
        return second if first is None else first
    made = {**second, **first}
    for key in first.keys() & second.keys() - {_VERSION}:
        made[key] = _united(first[key], second[key])
    return made


def _united(first: Any, second: Any) -> Any:
    """Entries of two maps; of an entry that is a map of numbers too, the numbers of both."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second if first is None else first
    made = {**second, **first}
    for key in first.keys() & second.keys():
        if all(_is_numbers(one) for one in (first[key], second[key])):
            made[key] = {**second[key], **first[key]}
    return made


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, int) for key in value)


def _leaves(data: Mapping[str, Any]) -> dict[tuple[Any, ...], Any]:
    """Entries by their place, those of maps by number one by one."""
    found: dict[tuple[Any, ...], Any] = {}
    for table, entries in data.items():
        for key, value in entries.items() if isinstance(entries, dict) and table not in _DERIVED else ():
            if _is_numbers(value):
                found |= {(table, key, number): one for number, one in value.items()}
            else:
                found[table, key] = value
    return found
