"""`python -m rmqtool`."""

from __future__ import annotations

from rmqtool.cli.main import main

main()
