"""Tests that say which consequences they show: each is held to that, and all of them to the catalogue."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from tests.recovery import laws

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome

SHOWN: dict[str, set[str]] = {}
"""by the name of a module, the codes that its tests show on stores of their own; filled as it is imported"""
_met: set[str] = set()


def shows(*wanted: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Says which codes a test shows; it fails when one of them is in no outcome that it looked at."""

    def around(test: Callable[..., None]) -> Callable[..., None]:
        SHOWN.setdefault(test.__module__, set()).update(wanted)

        @wraps(test)
        def run(*args: Any, **more: Any) -> None:
            _met.clear()
            test(*args, **more)
            assert set(wanted) <= _met

        return run

    return around


def all_shown() -> set[str]:
    """Codes that the modules of tests of this directory show, whichever of them the run has collected."""
    names = [
        f"{__package__}.{one.name}"
        for one in iter_modules([str(Path(__file__).parent)])
        if one.name.startswith("test_")
    ]
    for name in names:
        import_module(name)
    return {code for name in names for code in SHOWN.get(name, ())}


def codes(outcome: Outcome) -> set[str]:
    """Those of an outcome that a test looks at."""
    found = {one.code for one in outcome.consequences}
    _met.update(found)
    return found


def of(outcome: Outcome, code: str) -> list[Consequence]:
    """Those with the code, of an outcome that a test looks at."""
    codes(outcome)
    return laws.of(outcome, code)
