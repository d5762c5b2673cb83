"""`python -m rmqtool`."""

from __future__ import annotations

import os
import sys

if (
    not sys.flags.safe_path
    and sys.path[0] == os.getcwd()
    and sys.path[0] != os.path.dirname(os.path.dirname(__file__))
):
    del sys.path[0]  # -m puts the current directory there, which may be a stranger's store

from rmqtool.cli.main import main

main()
