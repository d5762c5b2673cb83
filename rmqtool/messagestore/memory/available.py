"""How much memory this process may have: of the machine, and of the control groups that it is in."""

from __future__ import annotations

import os
from pathlib import Path

_PART = 0.75
"""of what is available, for messages"""
_V1 = "memory"


def default_bound(root: Path = Path("/")) -> int:
    """Bytes for messages where no setting says how many. root: of the file system that tells."""
    return int(available(root) * _PART)


def available(root: Path = Path("/")) -> int:
    """Bytes that can be had without swapping, by the machine and by every control group above the process."""
    return max(min([_of_machine(root), *_of_groups(root)]), 0)


def _of_machine(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _of_groups(root: Path) -> list[int]:
    """What is left of each limit (cgroup v2 and v1)."""
    found: list[int] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            base, limit, used = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif _V1 in controllers.split(","):
            base, limit = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            used = "memory.usage_in_bytes"
        else:
            continue
        # a container sees its own group as the root, under a path that it cannot follow
        below = [one for one in path.split("/") if one not in {"", ".."}]
        for depth in range(len(below), -1, -1):
            group = base.joinpath(*below[:depth])
            most, now = _text(group / limit).strip(), _text(group / used).strip()
            if most.isdigit() and now.isdigit():
                cached = _reclaimable(_text(group / "memory.stat"))
                found.append(int(most) - max(int(now) - cached, 0))
    return found


def _reclaimable(statistics: str) -> int:
    """Bytes of files in a group's cache, which go first."""
    for line in statistics.splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdigit():
            return int(value)
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
