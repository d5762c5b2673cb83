"""The message store beside SQLite in WAL mode: the works of `rmqtool store bench`, both in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.messagestore.bench.engines import measured
from tests.bench.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGES, ROUNDS = 20_000, 3
TARGETS = {
    "put": 4.0,
    "put_many": 5.0,
    "put_sync": 1.0,
    "consume_raw": 0.3,
    "consume_objects": 0.5,
    "get_random": 0.3,
    "key": 0.3,
}
"""times as many messages a second; of reads what was reached"""


def against_sqlite(directory: Path, body_bytes: int, number: int = MESSAGES) -> Iterator[Figure]:
    """How many times as many messages a second, the best of some rounds of each."""
    directory.mkdir(exist_ok=True)
    rates = {
        (engine, one.work): one.per_second
        for engine in ("rmqtool", "sqlite")
        for one in measured(directory / engine, engine, list(TARGETS), body_bytes, number, ROUNDS)
    }
    for work, target in TARGETS.items():
        ours, theirs = rates["rmqtool", work], rates["sqlite", work]
        note = f"{ours / 1000:.1f} k/s, {theirs / 1000:.1f} k/s"
        yield Figure(f"{work}, bodies of {body_bytes} B", "SQLite (WAL)", ours / theirs, target, note=note)
