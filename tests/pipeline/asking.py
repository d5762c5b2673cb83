"""Keys to ask stores for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MANY = 20_001
"""keys that nobody has, so that whole columns of hashes are compared"""


def keys_of(store: Path) -> list[str]:
    """Some keys of messages, elements of KEYS and UNIQ_KEYs."""
    rows = rmq("dump", store, "--format", "ndjson").of_type("message")
    found = {key for row in rows for key in row["keys"] or ()} | {
        row["uniq_key"] for row in rows if row["uniq_key"]
    }
    return sorted(key for key in found if key == key.strip() and "\n" not in key)[::3]


def key_file(directory: Path, stores: Sequence[Path], absent: int = 1) -> Path:
    """A file of some keys of the stores, and of some that are nowhere."""
    keys = {key: None for store in stores for key in keys_of(store)}
    file = directory / "keys.txt"
    file.write_text("\n".join([*keys, *(f"absent-{number}" for number in range(absent))]))
    return file
