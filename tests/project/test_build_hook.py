"""The hook that compiles kernels into a wheel."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.project.files import ROOT

if TYPE_CHECKING:
    import pytest


def test_the_build_hook_keeps_the_search_path_of_an_isolated_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """There pip has put what the hook needs; without it a wheel has no compiled kernels."""
    for name in (
        "hatchling",
        "hatchling.builders",
        "hatchling.builders.hooks",
        "hatchling.builders.hooks.plugin",
    ):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    interface = ModuleType("interface")
    interface.__dict__["BuildHookInterface"] = object
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    monkeypatch.setenv("PYTHONPATH", "isolated")
    hook = SimpleNamespace(root="root", app=SimpleNamespace(display_warning=print))
    seen: list[str] = []

    def run(*_: Any, env: dict[str, str], **__: Any) -> SimpleNamespace:
        seen.append(env["PYTHONPATH"])
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(subprocess, "run", run)
    runpy.run_path(str(ROOT / "hatch_build.py"))["Kernels"].initialize(hook, "standard", {})
    assert seen == [os.pathsep.join(["root", "isolated"])]
