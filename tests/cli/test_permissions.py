"""What this user may not list or read: no complete answer, and no plan, as if it were not there."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import healthy_store
from rmqtool.store.consumer_offsets import OFFSETS
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_PR_CAPBSET_DROP = 24
_READ_ANYTHING = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root reads what modes forbid"""


def _without_privilege() -> None:
    library = ctypes.CDLL(None)
    for capability in _READ_ANYTHING:
        library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command by a user whom the modes of files hold."""
    command = [sys.executable, "-m", "rmqtool", *map(str, arguments)]
    drop = _without_privilege if os.geteuid() == 0 else None
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=drop)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return healthy_store().write(tmp_path_factory.mktemp("whole") / "store").root


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "store")


@pytest.mark.share
@pytest.mark.parametrize(
    ("closed", "command"),
    [
        ("config", "config check"),
        ("config", "offsets audit"),
        ("config", "store groups"),
        ("config", "retry"),
        ("config", "delayed"),
        ("consumequeue", "offsets audit"),
        ("consumequeue", "store groups"),
        ("consumequeue", "store status"),
        ("commitlog", "offsets audit"),
        (f"config/{OFFSETS}", "store groups"),
    ],
)
def test_an_answer_without_it_is_incomplete(store: Path, closed: str, command: str) -> None:
    assert run(*command.split(), store).returncode != 3
    (store / closed).chmod(0)
    result = run(*command.split(), store)
    assert result.returncode == 3, result.stdout + result.stderr
    assert f"{closed}: " in result.stderr
    assert "Complete." not in result.stderr


@pytest.mark.share
@pytest.mark.parametrize("closed", ["config", f"config/{OFFSETS}", "consumequeue/Orders", "index"])
@pytest.mark.parametrize("command", ["recover", "rebuild", "config salvage", "offsets clamp", "doctor"])
def test_nothing_is_planned_or_judged_without_it(store: Path, closed: str, command: str) -> None:
    (store / closed).chmod(0)
    result = run(*command.split(), store)
    assert result.returncode == 4
    assert not result.stdout
    *_, error = result.stderr.splitlines()
    assert error.startswith(f"rmqtool: {closed}: may not be ")


@pytest.mark.share
@pytest.mark.parametrize("closed", ["consumequeue", "consumequeue/Orders"])
def test_keys_are_found_without_the_queues(store: Path, closed: str) -> None:
    for table in ("topics.json", "topics.json.bak"):  # which would name the topic, too
        (store / "config" / table).unlink()
    asked = ("query-key", store, "k0", "--quiet")
    known = run(*asked)
    assert (known.returncode, bool(known.stdout)) == (0, True)
    (store / closed).chmod(0)
    assert run(*asked).stdout == known.stdout


@pytest.mark.share
@pytest.mark.parametrize("closed", ["config", "consumequeue", "consumequeue/Orders", "index"])
def test_a_list_of_what_to_copy_lacks_nothing_unsaid(store: Path, closed: str, tmp_path: Path) -> None:
    (store / closed).chmod(0)
    result = run("info", store, "--what-to-copy", "--json")
    assert (result.returncode, '"complete":false' in result.stdout) == (3, True)
    written = tmp_path / "rmqtool-manifest"
    assert run("info", store, "--what-to-copy", "--manifest", written).returncode == 1
    assert not written.exists()
