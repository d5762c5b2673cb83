"""Lines against the table: the first entry that fits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.explain.table import ENTRIES

if TYPE_CHECKING:
    from rmqtool.explain.entry import Entry

_RUN = re.compile(r"\d+")
_MOST_FORMS = 50_000


@dataclass(frozen=True)
class Match:
    """An entry that fits a line, with the values of that line."""

    entry: Entry
    values: dict[str, str]


class Table:
    """The entries in the order in which they are tried."""

    def __init__(self, entries: tuple[Entry, ...] = ENTRIES) -> None:
        self.entries = entries
        self._forms: dict[str, tuple[Entry | None, bool]] = {}
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

    def look_up(self, text: str) -> tuple[Match | None, bool]:
        """`find` and `depends_on_digits`, quicker for lines that differ from earlier ones in digits only."""
        form = _RUN.sub("0", text)
        if form not in self._forms:
            found = self.find(text)
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            self._forms[form] = (found.entry if found else None, self.depends_on_digits(text))
            return found, self._forms[form][1]
        entry, depends = self._forms[form]
        if depends:
            return self.find(text), True
        values = None if entry is None else entry.values(text)
        return None if entry is None or values is None else Match(entry, values), False

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
