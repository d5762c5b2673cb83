"""Attacks that once succeeded, through the commands alone, so that they run against any release."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable

    import fixtures

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")

OTHER = 1234
FILES = 300


def apply(golden: fixtures.Golden, *words: object) -> list[object]:
    conf = ("--store-config", golden.config_path, "--as-version", "5.3.3")
    return [*words[:-2], golden.path, *conf, *words[-2:], "--apply"]


def test_the_owner_of_a_store_leads_its_copy_elsewhere(
    fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    """He swaps a directory of it for a link as soon as it is his."""
    golden, out, victim = fresh_golden("v533-basic"), tmp_path / "out", tmp_path / "victim"
    (golden.path / "config").mkdir(exist_ok=True)
    for number in range(FILES):
        (golden.path / "config" / f"{number}.json").write_bytes(b"{}")
    for place in (golden.path, *golden.path.rglob("*")):
        os.chown(place, OTHER, OTHER)
    victim.mkdir()
    tmp_path.chmod(0o711)
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)  # no other user gets below pytest's directory by its path
        os.setgroups([])
        os.setgid(OTHER)
        os.setuid(OTHER)
        while True:
            _swap(Path("out/config"), victim)
    try:
        rmq(*apply(golden, "checkpoint", "set", "--physic", "0", "--output", out))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert list(victim.iterdir()) == []


def _swap(config: Path, victim: Path) -> None:
    with suppress(OSError):
        config.rename("out/moved")
        config.symlink_to(victim)


def test_a_journal_names_files_elsewhere(
    fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    golden, backup, victim = fresh_golden("v533-basic"), tmp_path / "backup", tmp_path / "victim"
    for path in golden.path.glob("consumequeue/*/0/*"):
        path.unlink()
    for path in golden.path.glob("consumequeue/*/1/*"):
        path.write_bytes(bytes(path.stat().st_size))
    assert rmq(*apply(golden, "rebuild", "--in-place", "--backup", backup)).exit_code == 0
    path = backup / "journal.json"
    reported = json.loads(path.read_text())
    for entry in reported["entries"]:
        made = (golden.path / entry["path"]).read_bytes()  # as the undo expects to find it
        victim.write_bytes(made)
        victim.chmod(0o600)
        path.write_text(json.dumps({**reported, "entries": [_elsewhere(entry, victim)]}))
        rmq("undo", backup, "--apply")
        assert victim.exists(), entry
        assert (victim.read_bytes(), victim.stat().st_mode & 0o7777) == (made, 0o600), entry


def _elsewhere(entry: dict[str, Any], victim: Path) -> dict[str, Any]:
    """The same file of a store, which is said to lie in another place, with set-uid when it comes back."""
    found = {**entry, "location": str(victim)}
    for facts in found.values():
        if isinstance(facts, dict) and "mode" in facts:
            facts["mode"] = 0o4755
    return found
