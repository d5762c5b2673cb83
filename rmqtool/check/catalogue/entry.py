"""What one code of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """One entry: severity, sentence, what to do next.

    Facts of the finding stand in braces, `{found}`, and words that go with a number of them as
    `{found:record has|records have}`.
    """

    code: str
    severity: Severity
    sentence: str
    hint: str

    def filled(self, facts: Mapping[str, Any]) -> str:
        """The sentence with these facts in it."""
        return numbered.filled(self.sentence, facts)

    @property
    def of_many(self) -> str:
        """The sentence with its facts in braces, as it is about several."""
        return numbered.of_many(self.sentence)

    @property
    def anchor(self) -> str:
        """Where the docs speak of it: docs/findings.md#anchor."""
        return self.code.lower()
