"""The Java program of this machine: Spark runs on it, and `store bench` measures the Java store with it."""

from __future__ import annotations

import os
import shutil

from rmqtool.errors import UsageError


def java_program(needs: str) -> str:
    """Absolute path of `java`, of JAVA_HOME or else of PATH. needs: what wants it, the begin of the error.

    Raises `UsageError` where there is none that can be run.
    """
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java", path=search_path())
    if program is None or not os.path.isabs(program) or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}" if home else "there is no java in PATH and JAVA_HOME is not set"
        raise UsageError(f"{needs}: {where}")
    return program


def search_path() -> str:
    """PATH without what is relative: the current directory may be a stranger's store."""
    return os.pathsep.join(filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep)))
