"""Lines against the table: the first entry that fits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.explain.table import ENTRIES

if TYPE_CHECKING:
    from rmqtool.explain.entry import Entry


@dataclass(frozen=True)
class Match:
    """An entry that fits a line, with the values of that line."""

    entry: Entry
    values: dict[str, str]


class Table:
    """The entries in the order in which they are tried."""

    def __init__(self, entries: tuple[Entry, ...] = ENTRIES) -> None:
        self.entries = entries
        self._by_id = {entry.id: entry for entry in entries}

    def __getitem__(self, entry_id: str) -> Entry:
        return self._by_id[entry_id]

    def find(self, text: str) -> Match | None:
        """The first entry that fits the line."""
        for entry in self.entries:
            values = entry.values(text)
            if values is not None:
                return Match(entry, values)
        return None

    def depends_on_digits(self, text: str) -> bool:
        """Whether other digits in this line could give it another meaning."""
        return any(one.search(text) for entry in self._telling_digits for one in entry.loose_patterns)

    @cached_property
    def _telling_digits(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.tells_digits)

    @cached_property
    def prefilter(self) -> str:
        """A pattern for RE2: lines that it does not find once their digits are 0 are not in the table."""
        anchors = {re.sub(r"\d", "0", anchor) for entry in self.entries for anchor in entry.anchors}
        kept = sorted(one for one in anchors if not any(other in one for other in anchors - {one}))
        return "|".join(re.sub(r"([^\w\s/:,=<>'\"#%&;@-])", r"\\\1", one) for one in kept)
