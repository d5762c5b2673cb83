"""What commands cost at n and at 4n: holes in one queue, queues with holes, topics."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fixtures.many import Many
from tests.bench.measure import Figure, run_alone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAW = 6.0
"""how often the time at n the time at 4n may be; a product of two growing things has 16"""

RELEASE = ("--as-version", "5.3.3")
COMMANDS: dict[str, tuple[str, ...]] = {
    "recover": ("recover", "--policy", "keep", *RELEASE),
    "doctor": ("doctor", *RELEASE),
    "rebuild": ("rebuild", "--what", "cq", *RELEASE),
    "verify": ("verify",),
    "info": ("info",),
}
HELD = (0, 1)


@dataclass(frozen=True)
class Case:
    """Stores of one kind. large: of 4n; what grows is `rounds` or `topics`. holes: a record in so many."""

    name: str
    large: Many
    grows: str
    every: int = 0
    commands: tuple[str, ...] = tuple(COMMANDS)

    def sizes(self) -> Iterator[Many]:
        """Of nearly nothing, n and 4n."""
        whole = {one: getattr(self.large, one) for one in self.large.__dataclass_fields__}
        for part in (0, 1, 4):
            yield Many(**{**whole, self.grows: max(whole[self.grows] * part // 4, 4)})

    def write(self, root: Path, many: Many) -> Path:
        """The store; the path of the settings."""
        many.write(root)
        if self.every:
            many.spoil(root, np.arange(1, many.messages - 1, self.every))
        settings = root.with_suffix(".conf")
        settings.write_text("".join(f"{name}={value}\n" for name, value in many.settings.items()))
        return settings


CASES = (
    Case("100,000 holes in one queue", Many(1, 1, 200_000), "rounds", 2, ("recover",)),
    Case("10,000 queues with holes", Many(10_000, 1, 4), "topics", 4, ("recover",)),
    Case("25,000 topics", Many(25_000, 1, 2), "topics"),
)


def growth(directory: Path, case: Case) -> Iterator[Figure]:
    """Time of the processor at 4n against n, less what an almost empty store takes."""
    seconds: dict[str, list[float]] = {name: [] for name in case.commands}
    for number, many in enumerate(case.sizes()):
        root = directory / f"growing-{number}"
        settings = case.write(root, many)
        for name, taken in seconds.items():
            command, *options = COMMANDS[name]
            ran = run_alone(command, root, *options, "--store-config", settings, one_core=False, good=HELD)
            taken.append(ran.cpu_seconds)
        shutil.rmtree(root)
    for name, (nothing, small, large) in seconds.items():
        ratio = (large - nothing) / max(small - nothing, 0.01)
        note = f"{small:.1f} s and {large:.1f} s"
        yield Figure(f"{name}, {case.name}", "a quarter of them", ratio, LAW, at_most=True, note=note)
