"""Segments that are older than they are, for what goes with age: here and in the driver."""

from __future__ import annotations

import os
import time


def age(root: str, hours: list[float]) -> None:
    """The oldest segments were last written so many hours ago."""
    for name, before in zip(sorted(os.listdir(f"{root}/commitlog")), hours, strict=False):
        then = time.time() - before * 3600
        os.utime(f"{root}/commitlog/{name}", (then, then))
