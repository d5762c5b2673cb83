"""Extension files of consume queues: units that are damaged, gone, or whose addresses are given again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import patched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden


@shows("DR-REFUSE-EXTENSION")
def test_a_foreign_queue_file_with_extension_addresses(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Measured: 4.9.8 loads the golden with queue 0 over queue 1, not with queue 1 over queue 0."""
    for to, refused in (("1", False), ("0", True)):
        root = tmp_path / to
        shutil.copytree(golden("v498-cqext").path, root)
        queues = root / "consumequeue" / "TopicExt"
        shutil.rmtree(queues / to)
        shutil.copytree(queues / ("1" if refused else "0"), queues / to)
        found = of(simulate(Store.open(root), "4.9.8"), "DR-REFUSE-EXTENSION")
        paths = [one.paths for one in found]
        assert paths == ([("consumequeue_ext/TopicExt/0/00000000000000002048",)] if refused else [])


def extended(golden: Callable[[str], Golden], root: Path, release: str) -> Path:
    """A store with extension files: the units of queue 0 fill two of them and a part of the third."""
    shutil.copytree(golden(f"v{release.replace('.', '')}-cqext").path, root)
    return root


EXTENSION = "consumequeue_ext/TopicExt/0"


QUEUE_0 = "consumequeue/TopicExt/0"


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_extension_files_whose_units_all_stay(
    golden: Callable[[str], Golden], tmp_path: Path, release: str
) -> None:
    """Measured with both: what does not resolve passes every filter, before new messages come and after."""
    root = extended(golden, tmp_path / "store", release)
    assert simulate(Store.open(root), release).verdict is Verdict.SAFE
    patched(root / EXTENSION / f"{1024:020d}", 0, bytes(2))
    found = simulate(Store.open(root), release)
    assert (found.verdict, found.not_looked_at) == (Verdict.DAMAGED, ())
    (tags,) = of(found, "DR-WRONG-TAGS")
    assert tags.facts["count"] == found.already_damaged.messages == 1


def test_entries_of_expired_messages_need_no_extension_unit(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Seed 10775: a copy of a queue, of which nothing but entries of expired messages is left."""
    root = extended(golden, tmp_path / "store", "4.9.8")
    first, second = sorted((root / "commitlog").iterdir())[:2]
    units = (root / QUEUE_0 / f"{0:020d}").read_bytes()
    kept = [
        units[at : at + 20]
        for at in range(0, len(units), 20)
        if int.from_bytes(units[at : at + 8], "big") < int(second.name)
    ]
    copy = root / "consumequeue/TopicExt/35"
    copy.mkdir()
    (copy / f"{0:020d}").write_bytes(b"".join(kept).ljust(len(units), b"\0"))
    assert "DR-EXTENSION-CUT" in codes(simulate(Store.open(root), "4.9.8"))
    first.unlink()
    assert "DR-EXTENSION-CUT" not in codes(simulate(Store.open(root), "4.9.8"))


@shows("DR-WRONG-TAGS")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_tags_codes_of_units_and_of_extension_units(
    golden: Callable[[str], Golden], tmp_path: Path, release: str
) -> None:
    root = extended(golden, tmp_path / "store", release)
    patched(root / EXTENSION / f"{0:020d}", 8, b"\x77")
    found = simulate(Store.open(root), release)
    assert (found.verdict, found.already_damaged.messages) == (Verdict.DAMAGED, 1)
    assert of(found, "DR-WRONG-TAGS")[0].facts["start"] == 0


@shows("DR-EXTENSION-CUT")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
@pytest.mark.parametrize("damage", ["last file", "no last file", "address", "first address"])
def test_addresses_that_new_messages_get_again(
    golden: Callable[[str], Golden], tmp_path: Path, release: str, damage: str
) -> None:
    """Measured with both: a filter took other messages of the queue once 60 more had been put into it."""
    root = extended(golden, tmp_path / "store", release)
    last = root / EXTENSION / f"{2048:020d}"
    if damage == "last file":
        patched(last, 34, bytes(2))
    elif damage == "no last file":
        last.unlink()
    else:
        patched(root / QUEUE_0 / f"{0:020d}", 18 if damage == "first address" else 5 * 20 + 18, b"\x0c")
    found = simulate(Store.open(root), release)
    assert found.verdict is Verdict.UNSAFE
    (cut,) = of(found, "DR-EXTENSION-CUT")
    assert (cut.facts["topic"], cut.facts["queue_id"]) == ("TopicExt", 0)
