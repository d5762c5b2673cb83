"""The page of log lines is the table's."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers import ROOT


def test_the_page_of_log_lines_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "docs/log_lines_page.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
