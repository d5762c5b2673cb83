"""Commands that write, for tests of what happens to them meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import fixtures

PUT = ("--in-place", "--backup", "{to}", "--apply")
MAKING = {
    "ndjson": ("export", "{store}", "--to", "{to}.ndjson"),
    "parquet": ("export", "{store}", "--to", "{to}.parquet"),
    "lake": ("export", "{store}", "--to", "{to}", "--format", "parquet", "--partition", "topic"),
    "salvage": ("salvage", "{store}/commitlog", "--output", "{to}"),
    "rebuild": ("rebuild", "{store}", "{conf}", "--output", "{to}", "--apply"),
    "recover": ("recover", "{store}", "{conf}", "--output", "{to}", "--apply"),
    "checkpoint": ("checkpoint", "set", "{store}", "{conf}", "--physic", "0", "--output", "{to}", "--apply"),
    "plan": ("checkpoint", "set", "{store}", "{conf}", "--physic", "0", "--save-plan", "{to}"),
}
"""what makes something new at `{to}`, or at a name that begins so"""

IN_PLACE = {
    "rebuild": ("rebuild", "{store}", "{conf}", *PUT),
    "recover": ("recover", "{store}", "{conf}", *PUT),
    "checkpoint": ("checkpoint", "set", "{store}", "{conf}", "--physic", "0", *PUT),
}
"""what changes the store, with what `undo` needs at `{to}`"""


def words(given: tuple[str, ...], golden: fixtures.Golden, to: Path) -> list[str]:
    """The command for a store and a place; `{conf}` are its settings and release."""
    conf = ("--store-config", str(golden.config_path), "--as-version", "5.3.3")
    found: list[str] = []
    for one in given:
        found += conf if one == "{conf}" else [one.format(store=golden.path, to=to)]
    return found
