"""Two sets of stored offsets, entry by entry."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.query.offsets.places import table_offsets
from rmqtool.store.config_json import load_json_config
from rmqtool.store.consumer_offsets import DELAY_OFFSETS, LIGHT_OFFSETS, OFFSETS, offsets_file
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.query.offsets.places import Chosen, Place
    from rmqtool.store.layout import Store

_TABLES = (OFFSETS, LIGHT_OFFSETS, DELAY_OFFSETS)


class Difference(StrEnum):
    """Which of two tables has an entry, or is further."""

    A_AHEAD = "a_ahead"
    B_AHEAD = "b_ahead"
    ONLY_A = "only_a"
    ONLY_B = "only_b"


@dataclass(frozen=True, slots=True)
class Differing:
    """An entry that is not the same in both; None where one does not have it."""

    place: Place
    a: int | None
    b: int | None

    @property
    def state(self) -> Difference:
        """How it differs."""
        if self.a is None or self.b is None:
            return Difference.ONLY_B if self.a is None else Difference.ONLY_A
        return Difference.A_AHEAD if self.a > self.b else Difference.B_AHEAD

    @property
    def row(self) -> dict[str, Any]:
        """Its keys in JSON. ahead: how far B is ahead of A."""
        ahead = None if self.a is None or self.b is None else self.b - self.a
        place = self.place.row
        return {
            "type": "difference",
            **place,
            "a": self.a,
            "b": self.b,
            "ahead": ahead,
            "state": str(self.state),
        }


def differing(a: Mapping[Place, int], b: Mapping[Place, int]) -> Iterator[Differing]:
    """What is not the same in both, sorted."""
    for place in sorted(a.keys() | b.keys()):
        if a.get(place) != b.get(place):
            yield Differing(place, a.get(place), b.get(place))


def offsets_of_store(store: Store, chosen: Chosen) -> dict[Place, int]:
    """All offsets that a broker would load, of those chosen."""
    found: dict[Place, int] = {}
    for name in (offsets_file(store), DELAY_OFFSETS):
        found |= table_offsets(name, store.config_pair(name).data)
    return {place: offset for place, offset in found.items() if chosen(place)}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a table of offsets by itself, and not a store."""
    return os.path.isfile(path)


def offsets_of_file(path: str | os.PathLike[str], chosen: Chosen) -> dict[Place, int]:
    """Those of one table, also copied away under another name. Raises `UsageError` for what is none."""
    shown = escape_name(os.fspath(path))
    parsed = load_json_config(path)
    if not isinstance(parsed.data, dict):
        raise UsageError(f"{shown} is not a table of offsets: {parsed.detail or parsed.state.value}")
    table = parsed.data.get("offsetTable")
    if not isinstance(table, dict):
        raise UsageError(f"{shown} is not a table of offsets: it has no offsetTable")
    plain = os.path.basename(path).removesuffix(".bak")
    found = table_offsets(plain if plain in _TABLES else _shape_of(parsed.data), parsed.data)
    return {place: offset for place, offset in found.items() if chosen(place)}


def _shape_of(data: Mapping[str, Any]) -> str:
    """The table that has this shape: groups have a map in their entry, levels a number."""
    if "lmqOffsetTable" in data:
        return LIGHT_OFFSETS
    entries = data["offsetTable"].values()
    return DELAY_OFFSETS if entries and not any(isinstance(one, dict) for one in entries) else OFFSETS
