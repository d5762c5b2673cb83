"""What one code of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHOW = "rmqtool show STORE OFFSET shows the record, its consume queue entry and its index entries"


class Severity(StrEnum):
    """`error`: data is damaged or lost.

    `warning`: something a broker would trip over. `note`: worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """One entry: severity, sentence (with facts of the finding in braces), what to do next."""

    code: str
    severity: Severity
    sentence: str
    hint: str

    @property
    def anchor(self) -> str:
        """Where the docs speak of it: docs/findings.md#anchor."""
        return self.code.lower()
