"""A command that is done has its files on the medium, and their names."""

from __future__ import annotations

import pytest

from tests.disks import synced
from tests.helpers import rmq

COMMANDS = {
    "salvage": ("salvage", "{store}/commitlog", "--output", "{to}"),
    "rebuild": ("rebuild", "{store}", "--output", "{to}", "--apply"),
    "recover": ("recover", "{store}", "--output", "{to}", "--apply"),
    "checkpoint": ("checkpoint", "set", "{store}", "--physic", "0", "--output", "{to}", "--apply"),
    "export": ("export", "{store}", "--format", "ndjson", "--to", "{to}"),
    "export-raw": ("export", "{store}", "--format", "raw", "--to", "{to}"),
    "export-parquet": ("export", "{store}", "--format", "parquet", "--to", "{to}"),
    "export-lake": ("export", "{store}", "--format", "parquet", "--partition", "topic", "--to", "{to}"),
}


@pytest.mark.share
@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_writes_is_synced(golden, tmp_path, monkeypatch, name):
    to = tmp_path / "new"
    words = [word.format(store=golden("v533-basic").path, to=to) for word in COMMANDS[name]]
    found = synced(monkeypatch)
    done = rmq(*words)
    assert done.exit_code == 0, done.stderr
    made = [tmp_path, to, *to.rglob("*")]
    assert [str(one.relative_to(tmp_path)) for one in made if one.stat().st_ino not in found] == []
