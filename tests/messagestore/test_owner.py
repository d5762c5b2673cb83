"""What root makes in a store of another user is that user's, or no broker could open it afterwards."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tests.disks import refuse
from tests.helpers import rmq
from tests.messagestore.helpers import open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")

OTHER, GROUP = 1234, 2345


def foreign(*roots: Path) -> list[str]:
    """What does not belong to the owner and group of the store."""
    every = [one for root in roots if root.exists() for one in (root, *root.rglob("*"))]
    return [str(one) for one in every if (one.lstat().st_uid, one.lstat().st_gid) != (OTHER, GROUP)]


@pytest.mark.parametrize("settings", [{}, {"elsewhere": True}, {"nameless": False}], ids=str)
def test_all_that_is_made_is_the_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, bool]
) -> None:
    root, more = tmp_path / "store", tmp_path / "more"
    root.mkdir()
    os.chown(root, OTHER, GROUP)
    paths = {"storePathCommitLog": str(more / "log")} if settings.get("elsewhere") else {}
    if "nameless" in settings:  # a file system that makes no file without a name
        refuse(
            monkeypatch,
            "open",
            errno.EOPNOTSUPP,
            lambda _, flags=0, *more: flags & os.O_TMPFILE == os.O_TMPFILE,
        )
    with open_small(root, **paths) as store:
        store.put_many(traffic(0, 100))
        store.flush()
        assert store.query_key("Topic1", "key-99")
        assert (root / "abort").exists()
        assert foreign(root, more) == []
    assert foreign(root, more) == []
    assert {"checkpoint", "config", "consumequeue", "index", "lock"} <= set(os.listdir(root))


def test_of_every_command(tmp_path: Path) -> None:
    root, other, replay = tmp_path / "store", tmp_path / "other", tmp_path / "some.replay"
    with open_small(other) as store:
        store.put_many(traffic(0, 20))
    assert rmq("export", other, "--to", replay).exit_code == 0
    root.mkdir()
    os.chown(root, OTHER, GROUP)
    for words in (
        ("init",),
        ("topic", "T", "--read-queues", "2"),
        ("put", "T", "--body", "x"),
        ("put", "U", "--body", "x", "--flush", "sync"),
        ("load", replay),
        ("topic", "U", "--delete"),
        ("expire",),
    ):
        assert rmq("store", words[0], root, *words[1:]).exit_code == 0
        assert foreign(root) == []
