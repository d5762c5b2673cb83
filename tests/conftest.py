"""Fixtures for all rooms: real stores, and the proof that commands leave them alone."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fixtures
from tests.helpers import Entry, differences, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENVIRONMENT = {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
UNWANTED = ("FORCE_COLOR", "CLICOLOR_FORCE", "RMQTOOL_KERNELS", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE")
MEMORY = Path("/dev/shm")
ROOM = 6 << 30
"""bytes that must be free there"""
pytest_plugins = ["tests.tiers"]


def in_memory(chosen: str) -> bool:
    """Whether files of the tests are kept in memory: thousands of stores are written, synced and deleted.

    chosen: the expression of `-m`. Not those of benches, and not the large ones of `full`.
    """
    usual = "not full" in chosen and "not bench" in chosen
    if "TMPDIR" in os.environ or not usual or not os.access(MEMORY, os.W_OK):
        return False
    facts = os.statvfs(MEMORY)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(facts.f_bavail * facts.f_frsize, free) >= ROOM


def pytest_configure(config: pytest.Config) -> None:
    """One environment for every run: no colours, 80 columns, UTC; child processes inherit it."""
    if in_memory(config.getoption("markexpr", "") or ""):
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None
    os.environ.update(ENVIRONMENT)
    for name in UNWANTED:
        os.environ.pop(name, None)
    time.tzset()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # begun in the background of a script: tests of interrupts need what a terminal gives
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], fixtures.Golden]]:
    """Name → golden, unpacked once a session and shared: for reading only, and held to that at the end."""
    directory = tmp_path_factory.mktemp("golden")
    opened: dict[str, fixtures.Golden] = {}
    before: dict[str, dict[str, Entry]] = {}

    def open_once(name: str) -> fixtures.Golden:
        if name not in opened:
            opened[name] = fixtures.open_golden(name, directory)
            before[name] = snapshot(directory / name)
        return opened[name]

    yield open_once
    changed = {name: differences(before[name], snapshot(directory / name)) for name in opened}
    assert not any(changed.values()), f"a test changed a shared golden: {changed}"


@pytest.fixture
def fresh_golden(tmp_path: Path) -> Callable[[str], fixtures.Golden]:
    """Name → a golden of this test's own, to change as it likes."""

    def open_fresh(name: str) -> fixtures.Golden:
        return fixtures.open_golden(name, tmp_path)

    return open_fresh


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[[fixtures.DamageCase | str], Path]:
    """Case of the damage corpus, or its id → root of the damaged store, this test's own."""

    def apply(case: fixtures.DamageCase | str) -> Path:
        found = fixtures.damage_case(case) if isinstance(case, str) else case
        return fixtures.apply_case(found, tmp_path / found.id)

    return apply


@pytest.fixture
def store_unchanged() -> Iterator[Callable[[Path], Path]]:
    """Path → the same path, watched: the test fails at its end if anything at or below it is not as it was.

    Content, size, mode, inode, modification and change times count; access times do not.
    """
    watched: list[tuple[Path, dict[str, Entry]]] = []

    def watch(path: Path) -> Path:
        watched.append((path, snapshot(path)))
        return path

    yield watch
    changed = [line for path, before in watched for line in differences(before, snapshot(path))]
    assert not changed, f"the command changed the store: {changed}"
