"""The Java program of this machine: Spark runs on it, and `store bench` measures the Java store with it."""

from __future__ import annotations

import os
import shutil

from rmqtool.errors import UsageError


def java_program(needs: str) -> str:
    """Path of `java`, of JAVA_HOME or else of PATH. needs: what wants it, the begin of the error.

    Raises `UsageError` where there is none that can be run.
    """
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}" if home else "there is no java in PATH and JAVA_HOME is not set"
        raise UsageError(f"{needs}: {where}")
    return program
