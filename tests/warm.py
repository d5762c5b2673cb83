"""Compiles the kernels once, before processes with tests start: each of them would compile them for itself.

python -m tests.warm
"""

from __future__ import annotations

import sys

from rmqtool.scan.ahead import build

if __name__ == "__main__":
    sys.exit(build.main())
