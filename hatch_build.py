"""hatchling's hook: compiles the kernels into the wheel, and into the checkout of an editable installation.

A wheel with them is for one system; it needs nothing of the C library but what every version has. Where they
cannot be compiled the wheel has none, is for every system, and numba compiles at the first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MADE = ["rmqtool/scan/ahead/kernels.so", "rmqtool/scan/ahead/kernels.json"]
TAG = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"


class Kernels(BuildHookInterface):
    """Runs before the files of the wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        """Builds, and says what the wheel is then."""
        command = [sys.executable, "-m", "rmqtool.scan.ahead.build"]
        # pip's isolated environments live by this variable
        paths = [self.root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if subprocess.run(command, cwd=self.root, env=environment, check=False).returncode != 0:  # noqa: S603
            self.app.display_warning("rmqtool: a wheel without compiled kernels")
            return
        build_data["artifacts"] += MADE
        build_data["pure_python"] = False
        build_data["tag"] = TAG
