"""A configuration table that no broker can parse: as much of its front as is whole.

A crash leaves a file cut, with zeros at its end, or a newer front over an older rest (`MixAll#string2File`
writes over it since 5.1). What was written first is then still right.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.check.config_files import View
from rmqtool.recovery.config_tables import config_view
from rmqtool.store.config_json import for_types, parse_config, read_listed
from rmqtool.store.config_types import misfits, with_numbers, without

if TYPE_CHECKING:
    from rmqtool.broker.traits import Traits
    from rmqtool.store.config_types import Misfit
    from rmqtool.store.layout import Store

_TOKEN = re.compile(
    rb'[ \t\r\n]*(?:([{}\[\]:,])|("[^"\\]*(?:\\.[^"\\]*)*")|(-?[0-9][0-9.eE+-]*|true|false|null))', re.DOTALL
)
_MARK = b"\xef\xbb\xbf"
_CLOSING = {b"{": b"}", b"[": b"]"}
_NUMBERS = frozenset({"consumerOffset.json", "lmqConsumerOffset.json"})
"""tables whose entries are maps of numbers, each of which is good without the others"""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The best front of a table and of its `.bak`.

    source: path that it is from. data: what the file becomes, None when nothing can be used. entries: of the
    table in it. kept: bytes of the source that are used. lost: those behind them. dropped: values in what is
    kept that no broker reads, which are left out.
    """

    source: str
    data: bytes | None = None
    entries: int = 0
    kept: int = 0
    lost: int = 0
    dropped: tuple[Misfit, ...] = ()

    @property
    def partial(self) -> bool:
        """Something of the source is not in `data`."""
        return bool(self.lost or self.dropped)


def salvage_table(store: Store, name: str, traits: Traits, written_for: Traits | None = None) -> Salvaged:
    """The front with the most entries that a broker loads; of equal ones that of the file itself.

    written_for: the release that the store is of, where `traits` are those of another: numbers are what that
    one reads.
    """
    best = Salvaged(name)
    for path in (name, f"{name}.bak"):
        found = salvage_file(store, path, traits, written_for)
        if found.entries > best.entries:
            best = found
    return best


def salvage_file(store: Store, path: str, traits: Traits, written_for: Traits | None = None) -> Salvaged:
    """The front of one file that a broker loads; see `salvage_table`."""
    raw = read_listed(store.file(path))[1]
    table = path.rpartition("/")[2].removesuffix(".bak")
    kept, data = valid_prefix(raw, 3 if table in _NUMBERS else 2)
    whole = parse_config(data)
    if written_for is not None and written_for.tables_of_5 and whole.data:
        plain = json.dumps(with_numbers(table, whole.data))
        if plain != json.dumps(whole.data):
            data = plain.encode()
            whole = parse_config(data)
    wrong = (
        tuple(misfits(table, for_types(data, whole), before_5=not traits.tables_of_5)) if whole.data else ()
    )
    dropped = tuple(one for one in wrong if not one.unquoted)
    if wrong:
        data = json.dumps(without(whole.data, dropped)).encode()
    entries = _entries(data)
    if not entries or config_view(table, data, traits) is not View.LOADS:
        return Salvaged(path)
    return Salvaged(path, data, entries, kept, len(raw) - kept, dropped)


def valid_prefix(raw: bytes, levels: int) -> tuple[int, bytes]:
    """Length of the longest front that ends behind a whole value, and that front with its brackets closed.

    levels: values deeper than this many brackets do not end it: half a topic's settings would be taken for
    all of them.
    """
    at = len(_MARK) if raw.startswith(_MARK) else 0
    front = _Front(levels, at)
    start = at
    while (found := _TOKEN.match(raw, at)) is not None and front.takes(found):
        at = found.end()
        if not front.open:
            break
    return front.end - start, raw[start : front.end] + front.closing


class _Front:
    """Goes through JSON token by token. end, closing: of the longest front so far."""

    def __init__(self, levels: int, at: int) -> None:
        self.open: list[bytes] = []
        self.end, self.closing = at, b""
        self._levels = levels
        self._expected = "value"
        self._number: int | None = None
        """the end of a number or word: it is whole only when something follows"""

    def takes(self, found: re.Match[bytes]) -> bool:
        """Whether the token may stand there."""
        mark, text, _ = found.groups()
        if mark is None:
            return self._scalar(found.end(), whole=text is not None)
        if mark in b"{[":
            return self._opens(mark)
        if mark == b":":
            return self._turn("colon", "value")
        return self._ends(mark, found.end())

    def _turn(self, expected: str, following: str) -> bool:
        right, self._expected = self._expected == expected, following
        return right

    def _opens(self, mark: bytes) -> bool:
        self.open.append(mark)
        return self._turn("value", "key" if mark == b"{" else "value")

    def _scalar(self, end: int, *, whole: bool) -> bool:
        if self._expected == "key":
            return self._turn("key", "colon")
        if not self.open or not self._turn("value", "next"):
            return False
        if whole:
            self._note(end)
        else:
            self._number = end
        return True

    def _ends(self, mark: bytes, end: int) -> bool:
        """A comma or a closing bracket."""
        if not self.open or (self._expected != "next" and not self._is_empty(mark)):
            return False
        if self._number is not None:
            self._note(self._number)
            self._number = None
        if mark == b",":
            self._expected = "key" if self.open[-1] == b"{" else "value"
            return True
        if mark != _CLOSING[self.open.pop()]:
            return False
        self._expected = "next"
        self._note(end)
        return True

    def _is_empty(self, mark: bytes) -> bool:
        """Whether this closes brackets with nothing in them, or with a comma last, which brokers take."""
        return (self._expected, mark) in {("key", b"}"), ("value", b"]")}

    def _note(self, end: int) -> None:
        if len(self.open) <= self._levels:
            self.end = end
            self.closing = b"".join(_CLOSING[one] for one in reversed(self.open))


def _entries(data: bytes) -> int:
    parsed = parse_config(data).data
    tables = parsed.items() if isinstance(parsed, dict) else ()
    return sum(len(value) for name, value in tables if isinstance(value, dict) and name != "dataVersion")
