"""What a replica gives, and what is not taken from it."""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from fixtures import copy_base, strict
from tests.repair.keep.laws import kept, repair

if TYPE_CHECKING:
    from pathlib import Path

BASE, RELEASE, SEGMENT = "v533-a-clean", "5.3.3", 65_536


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A store and its replica."""
    root = copy_base(BASE, tmp_path / "store")
    shutil.copytree(root, tmp_path / "replica")
    return root, tmp_path / "replica"


def zeroed(root: Path, start: int, end: int) -> None:
    """Zeros in the log."""
    with (root / f"commitlog/{start // SEGMENT * SEGMENT:020d}").open("r+b") as file:
        file.seek(start % SEGMENT)
        file.write(bytes(end - start))


def test_a_missing_segment_comes_from_the_replica(pair: tuple[Path, Path], tmp_path: Path) -> None:
    root, replica = pair
    (root / f"commitlog/{2 * SEGMENT:020d}").unlink()
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    assert strict.walk(tmp_path / "repaired") == strict.walk(replica)


def test_a_log_that_was_cut_gets_its_end_back(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Units point behind the end."""
    root, replica = pair
    log, end = strict.walk(root)
    start = sorted(log)[-3]
    zeroed(root, start, end)
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    assert strict.walk(tmp_path / "repaired") == (log, end)


def test_a_replica_that_is_ahead_adds_nothing_to_a_whole_log(pair: tuple[Path, Path], tmp_path: Path) -> None:
    root, replica = pair
    log, end = strict.walk(root)
    start = sorted(log)[-3]
    zeroed(root, start, end)
    behind = tmp_path / "behind"
    repair(root, RELEASE, behind)
    assert strict.walk(behind)[1] == start
    assert kept(behind, RELEASE, donors=(str(replica),)).changes == ()


@pytest.mark.parametrize("theirs_too", [False, True])
def test_a_record_with_torn_properties_is_taken_whole(
    theirs_too: bool, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """200644: it stayed with the properties that were left, though the replica had all of them."""
    root, replica = pair
    log, end = strict.walk(root)
    start = next(at for at, one in log.items() if b"KEYS" in one.raw and b"UNIQ_KEY" in one.raw)
    torn = start + log[start].raw.index(b"UNIQ_KEY")
    for store in (root, replica)[: 1 + theirs_too]:
        zeroed(store, torn, start + log[start].size)
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    found, reached = strict.walk(tmp_path / "repaired")
    assert reached == end
    assert (found == log) is not theirs_too
    assert found[start].body == log[start].body


def test_properties_that_damage_reaches_into_are_taken_too(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """No CRC covers them, and what was written over them may be text: only the replica tells."""
    root, replica = pair
    log, end = strict.walk(root)
    first, second = next(both for both in pairwise(sorted(log)) if b"UNIQ_KEY" in log[both[0]].raw)
    torn = first + log[first].raw.index(b"UNIQ_KEY")
    with (root / f"commitlog/{first // SEGMENT * SEGMENT:020d}").open("r+b") as file:
        file.seek(torn % SEGMENT)
        file.write(b"x" * (second - torn + 60))
    assert first in strict.carve(root)
    assert second not in strict.carve(root)
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    assert strict.walk(tmp_path / "repaired") == (log, end)


def test_a_few_other_bits_of_a_replica_take_the_place_of_nothing(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """400456: the record in front of damage is whole, and it was the donor's that had a wrong bit."""
    root, replica = pair
    log, end = strict.walk(root)
    first, second = next(both for both in pairwise(sorted(log)) if b"UNIQ_KEY" in log[both[0]].raw)
    zeroed(root, second, second + 60)
    with (replica / f"commitlog/{first // SEGMENT * SEGMENT:020d}").open("r+b") as file:
        file.seek((first + log[first].raw.index(b"UNIQ_KEY") + 12) % SEGMENT)
        file.write(b"#")
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    assert strict.walk(tmp_path / "repaired") == (log, end)


@pytest.mark.share
@pytest.mark.parametrize("how", ["zeros", "empty", "copy", "exchanged"])
@pytest.mark.parametrize("which", ["first", "last"])
def test_a_segment_at_an_end_of_the_log_comes_from_the_replica(
    which: str, how: str, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """No file held a record of it: the log began behind it, or ended in front of it, and it was lost."""
    root, replica = pair
    log, end = strict.walk(root)
    first, *_, last = sorted((root / "commitlog").iterdir())
    chosen, other = (first, last) if which == "first" else (last, first)
    data = other.read_bytes()
    chosen.write_bytes({"zeros": bytes(SEGMENT), "empty": b""}.get(how, data))
    if how == "exchanged":
        other.write_bytes(bytes(SEGMENT))
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    assert strict.walk(tmp_path / "repaired") == (log, end)


def test_what_has_expired_is_not_taken_from_the_replica(pair: tuple[Path, Path], tmp_path: Path) -> None:
    root, replica = pair
    first, *_ = sorted((root / "commitlog").iterdir())
    first.unlink()
    zeroed(root, SEGMENT + 5000, SEGMENT + 6000)
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica),))
    log, end = strict.walk(replica)
    assert strict.walk(tmp_path / "repaired") == ({at: log[at] for at in log if at >= SEGMENT}, end)


def test_a_second_replica_is_asked_for_what_the_first_lacks(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Of neighbours that are damaged each replica has one."""
    root, replica = pair
    log, end = strict.walk(root)
    shutil.copytree(replica, tmp_path / "other")
    first, second = sorted(log)[1:3]
    for place in (first, second):
        zeroed(root, place + 90, place + 100)
    zeroed(replica, first + 90, first + 100)
    zeroed(tmp_path / "other", second + 90, second + 100)
    repair(root, RELEASE, tmp_path / "repaired", donors=(str(replica), str(tmp_path / "other")))
    assert strict.walk(tmp_path / "repaired") == (log, end)
