"""Compiles the kernels once, before processes with tests start: each of them would compile them for itself.

python -m tests.warm
"""

from __future__ import annotations

import sys

from rmqtool.scan.ahead import build, target


def main() -> int:
    """Builds the library of this checkout, unless it is there."""
    try:
        target.usable()
    except ImportError:
        return build.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
