"""Compiles the kernels once, before processes with tests start: each of them would compile them for itself.

python -m tests.warm
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import fixtures
from tests.helpers import rmq

GOLDEN = "v533-basic"
DAMAGED = "v533-block-random-4096-mid-abort0"


def main() -> int:
    """Commands that go through all kernels, on small stores."""
    os.environ["RMQTOOL_KERNELS"] = "numba"
    with tempfile.TemporaryDirectory() as place:
        root = fixtures.open_golden(GOLDEN, place).path
        damaged = fixtures.apply_case(DAMAGED, Path(place, "damaged"))
        codes = [
            rmq("verify", root, "--deep").exit_code,
            rmq("dump", root, "--format", "ndjson").exit_code,
            rmq("dump", root / "consumequeue", "--format", "ndjson").exit_code,
            rmq("query-key", root, "none", "--source", "scan").exit_code,
            rmq("verify", damaged).exit_code,
            rmq("rebuild", damaged).exit_code,
            rmq("recover", damaged).exit_code,
            rmq("salvage", damaged / "commitlog", "--output", Path(place, "salvaged")).exit_code,
        ]
    return int(not {*codes} <= {0, 1, 3})


if __name__ == "__main__":
    sys.exit(main())
