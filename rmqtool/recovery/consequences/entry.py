"""One entry of the catalogue of consequences."""

from __future__ import annotations

from dataclasses import dataclass

from rmqtool.check.catalogue import Severity

__all__ = ["Entry", "Severity"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Severity, sentence (with facts, as `check.catalogue.numbered` has it), what to do next, releases.

    `error`: the start costs something, or there is none; the store is not safe to start. `warning`: nothing
    is lost by the start itself, but something will be missed. `note`: worth knowing.
    """

    code: str
    severity: Severity
    sentence: str
    hint: str
    releases: str = "every"

    @property
    def anchor(self) -> str:
        """Where the docs speak of it: docs/consequences.md#anchor."""
        return self.code.lower()
