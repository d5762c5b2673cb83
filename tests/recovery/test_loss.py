"""Which records behind the end of the log count as lost: each message once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import base_facts, copy_base
from rmqtool.broker.settings import settings_of
from rmqtool.recovery.simulation import reading_for, simulate
from rmqtool.scan import kernels_python
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.recovery.loss import Loss

SIZE = 65536


def segment(root: Path, number: int) -> Path:
    return root / f"commitlog/{number * SIZE:020d}"


def lost(root: Path) -> Loss:
    """What a start after a crash, which reads the whole log, costs."""
    (root / "abort").touch()
    (root / "checkpoint").unlink()
    store = Store.open(root, config=config_of(base_facts("v533-a-clean")["config"]))
    outcome = simulate(store, "5.3.3", settings_of(store), reading=reading_for(store, kernels_python))
    assert outcome.loss is not None
    return outcome.loss


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The log ends at the begin of its fourth segment."""
    root = copy_base("v533-a-clean", tmp_path / "store")
    with segment(root, 3).open("r+b") as file:
        file.write(bytes(32))
    return root


def test_a_copy_of_a_lost_segment_counts_once(broken: Path, tmp_path: Path) -> None:
    wanted = lost(copied(broken, tmp_path / "first")).messages
    segment(broken, 7).write_bytes(segment(broken, 5).read_bytes())
    assert lost(broken).messages == wanted


def test_a_stale_rest_of_a_recycled_file_is_no_loss(broken: Path, tmp_path: Path) -> None:
    bare = copied(broken, tmp_path / "first")
    tail = segment(bare, 6).read_bytes()
    end = len(tail.rstrip(b"\0"))
    for root in (bare, broken):
        older = segment(root, 0).read_bytes()
        if root is broken:
            segment(root, 6).write_bytes(tail[:end] + older[end:])
        segment(root, 0).unlink()
    wanted = lost(bare).messages
    assert wanted > 0
    assert lost(broken).messages == wanted


def test_a_segment_under_another_name_is_a_loss(broken: Path, tmp_path: Path) -> None:
    wanted = lost(copied(broken, tmp_path / "first")).messages
    segment(broken, 5).rename(segment(broken, 7))
    assert lost(broken).messages == wanted


def copied(root: Path, to: Path) -> Path:
    import shutil

    return shutil.copytree(root, to)
