"""One consequence of a start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue.numbered import filled
from rmqtool.recovery.consequences.catalogue import CATALOGUE
from rmqtool.store.names import escape_name, topic_keys

if TYPE_CHECKING:
    from rmqtool.recovery.consequences.entry import Severity


@dataclass(frozen=True, slots=True)
class Consequence:
    """paths: files concerned, relative to the root. facts: offsets, counts, names."""

    code: str
    severity: Severity
    message: str
    paths: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def hint(self) -> str:
        """What to do next."""
        return CATALOGUE[self.code].hint

    def row(self) -> dict[str, Any]:
        """As JSON."""
        facts = dict(self.facts)
        named = topic_keys(facts.pop("topic")) if "topic" in facts else {}
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "paths": list(self.paths),
            **named,
            **facts,
        }


def consequence(code: str, *paths: str, **facts: Any) -> Consequence:
    """One of the catalogue; its sentence must find all its facts, or `KeyError`."""
    entry = CATALOGUE[code]
    shown = facts | {name: escape_name(facts[name]) for name in ("topic",) if name in facts}
    return Consequence(code, entry.severity, filled(entry.sentence, shown), paths, facts)
