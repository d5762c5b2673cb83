"""Commands on one compound store, in this process, and what may never happen to any of them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode
from tests.helpers import Result, rmq

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.compound import Compound

SECONDS = 30
"""of one command; these stores have less than a few MB"""


@dataclass
class Asked:
    """Runs commands with the settings of the store; `broken` collects the laws that did not hold."""

    made: Compound
    work: Path
    broken: list[str] = field(default_factory=list)

    def ask(self, command: str, store: Path, *args: object, plain: bool = False) -> Result:
        """One command; internal errors, tracebacks and long runs break a law by themselves."""
        conf = () if plain else ("--store-config", self.made.conf)
        if command == "recover" and recover_follows():
            args = (*args, "--follow-links")
        begun = time.monotonic()
        result = rmq(*command.split(), store, *args, *conf)
        seconds = time.monotonic() - begun
        shown = " ".join(str(one) for one in (command, *args))[:100]
        unread = result.exit_code == ExitCode.NEWER_FORMAT and "in RocksDB" in result.stderr
        if result.exit_code not in (0, 1, 2, 3) and not unread:
            self.breaks("no-crash", f"{shown}: exit {result.exit_code} {result.stderr.strip()[-300:]}")
        if "Traceback" in result.stderr:
            self.breaks("no-crash", f"{shown}: {result.stderr.strip()[-300:]}")
        if seconds > SECONDS:
            self.breaks("bounded", f"{shown}: {seconds:.0f} s")
        return result

    def breaks(self, law: str, text: str) -> None:
        """Notes a law that does not hold."""
        self.broken.append(f"{law}: {text}")


@cache
def recover_follows() -> bool:
    """Whether `recover` leaves alone what lies behind links out of the store without `--follow-links`."""
    return "--follow-links" in rmq("recover", "--help").stdout


def document(result: Result) -> dict[str, Any]:
    """Standard output as one JSON document, empty where there is none."""
    try:
        found = json.loads(result.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def refused_by_excluded(asked: Asked, refusal: dict[str, str] | None, release: str) -> bool:
    """Whether a release does not start over a directory that stays: one that never had the store minds it.

    All traces in the store speak for the other major release then.
    """
    if refusal is None or not (asked.made.root / (refusal["path"] or "-")).is_dir():
        return False
    considered = document(asked.ask("doctor", asked.made.root, "--json")).get("versions_considered", [])
    return bool(considered) and all(one[0] != release[0] for one in considered)
