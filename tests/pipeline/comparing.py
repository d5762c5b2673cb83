"""Answers of jobs held against those of local commands, over many stores: all that differs is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_SHOWN = 20
"""differences that a failing test lists"""


class Differences:
    """Collects what differs, so that one store does not hide another."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def compare(self, store: Path, what: str, found: Any, expected: Any) -> None:
        """Notes the first place where `found` is not `expected`."""
        if found != expected:
            self.found.append(f"{store.name}: {what}{_first(found, expected)}")

    def none(self) -> None:
        """Fails with what was noted."""
        assert not self.found, "\n".join([f"{len(self.found)} differences", *self.found[:_SHOWN]])


def _first(found: Any, expected: Any) -> str:
    """Path to the first difference, and both values there."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in [*expected, *found]:
            if found.get(key) != expected.get(key) or (key in found) != (key in expected):
                return f"[{key!r}]{_first(found.get(key, '(none)'), expected.get(key, '(none)'))}"
    if isinstance(found, list) and isinstance(expected, list):
        for number, (one, other) in enumerate(zip(found, expected, strict=False)):
            if one != other:
                return f"[{number}]{_first(one, other)}"
        return f": {len(found)} rows, expected {len(expected)}"
    return f": {found!r:.600}, expected {expected!r:.600}"
