"""Compiles once what processes with tests would each compile for themselves: the kernels, and the tests.

python -m tests.warm
"""

from __future__ import annotations

import subprocess
import sys

from rmqtool.scan.ahead import build

_COLLECT = ("-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider")
"""loads every test module as a test does; compileall keeps plain assertions"""

if __name__ == "__main__":
    tests = subprocess.Popen([sys.executable, *_COLLECT], stdout=subprocess.DEVNULL)
    failed = build.main()
    tests.wait()
    sys.exit(failed)
