"""Compiles once what processes with tests would each compile for themselves: the kernels, and the tests.

python -m tests.warm
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from rmqtool.scan.ahead import build

if __name__ == "__main__":
    failed = build.main()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider"])  # compileall keeps plain assertions
    sys.exit(failed)
