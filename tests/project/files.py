"""The files of the project, as the checks of this folder see them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SKIPPED = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}


@cache
def project_files() -> tuple[Path, ...]:
    """Everything that is, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0 and listed.stdout:
        names = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        names = [path for path in ROOT.rglob("*") if not _SKIPPED & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in names if path.is_file()))


def sources(*folders: str) -> list[Path]:
    """The Python files under these folders."""
    roots = [ROOT / folder for folder in folders]
    return [p for p in project_files() if p.suffix == ".py" and any(p.is_relative_to(root) for root in roots)]


def texts() -> list[Path]:
    """Files written by hand: code, documentation, configuration."""
    kinds = {".py", ".md", ".toml", ".sh", ".svg", ""}
    return [
        p for p in project_files() if p.suffix in kinds and not p.is_relative_to(ROOT / "fixtures" / "golden")
    ]
