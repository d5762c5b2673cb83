"""Compaction logs: what `verify` says of them, and `doctor`, as seen with a real 5.3.3."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from formats.consumequeue import BatchUnit
from formats.primitives import sizeof
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.errors import UnreadableError
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from rmqtool.check.findings import Finding

LOG, QUEUE = "compaction/compactionLog/TopicCompact/0", "compaction/compactionCq/TopicCompact/0"
FIRST, SECOND, LAST = (f"{base:020d}" for base in (0, 8280, 107640))


def found_in(root: Path, level: Level = Level.DEFAULT) -> list[Finding]:
    store = Store.open(root)
    return list(Verification(store, ReadOptions.of(store), level).findings())


def zeroed(path: Path, start: int, end: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[start:end] = bytes(end - start)
    path.write_bytes(raw)


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4000])


def put(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


CASES: dict[str, tuple[Callable[[Path], None], list[str], Verdict, str | None]] = {
    "sound": (lambda _: None, [], Verdict.SAFE, None),
    "no queue file": (
        lambda root: remove(root / QUEUE / SECOND), ["CMP-PAIR"], Verdict.UNSAFE, "DR-REFUSE-COMPACTION",
    ),
    "no log file": (
        lambda root: remove(root / LOG / SECOND), ["CMP-PAIR"], Verdict.UNSAFE, "DR-REFUSE-COMPACTION",
    ),
    "no last queue file": (
        lambda root: remove(root / QUEUE / LAST), ["CMP-PAIR"], Verdict.UNSAFE, "DR-COMPACTION-CUT",
    ),
    "being deleted": (
        lambda root: (root / LOG / SECOND).rename(root / LOG / f"{SECOND}.delete") and None,
        ["DIR-STRAY", "CMP-PAIR"], Verdict.UNSAFE, "DR-REFUSE-COMPACTION",
    ),
    "length": (
        lambda root: shorter(root / LOG / SECOND), ["DIR-SIZE"], Verdict.UNSAFE, "DR-COMPACTION-LEFT-OUT",
    ),
    "no queue": (
        lambda root: remove(root / QUEUE), ["CMP-PAIR"] * 3, Verdict.UNSAFE, "DR-COMPACTION-LEFT-OUT",
    ),
    "hole": (
        lambda root: zeroed(root / LOG / FIRST, 300, 2000), ["CMP-GAP"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
    "body": (
        lambda root: put(root / LOG / FIRST, 89, b"\xff"), ["CMP-RECORD"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
    "topic": (
        lambda root: put(root / LOG / FIRST, 88 + 24 + 1, bytes(4)), ["CMP-RECORD"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
    "another queue": (
        lambda root: put(root / LOG / FIRST, 12, b"\0\0\0\x05"), ["CMP-RECORD"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
    "end": (
        lambda root: zeroed(root / LOG / LAST, 300, 8280), ["CMP-UNIT"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
    "unit": (
        lambda root: zeroed(root / QUEUE / LAST, 92, 138), ["CMP-UNSERVED"], Verdict.DAMAGED,
        "DR-COMPACTION-DAMAGED",
    ),
}  # fmt: skip


@pytest.mark.share
@pytest.mark.parametrize("case", CASES)
def test_a_compaction_log_is_looked_at(golden: Callable[[str], Golden], tmp_path: Path, case: str) -> None:
    harm, codes, verdict, code = CASES[case]
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    harm(root)
    assert [one.code for one in found_in(root) if one.code.startswith(("CMP", "DIR"))] == codes
    started = simulate(Store.open(root), "5.3.3")
    assert started.verdict is verdict
    said = [one.code for one in started.consequences if "COMPACTION" in one.code]
    assert said == [code] * (code is not None)
    before = simulate(Store.open(root), "5.0.0")
    assert not [one.code for one in before.consequences if "COMPACTION" in one.code]


def test_what_is_missing_is_counted(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    queue = root / QUEUE / LAST
    raw, step = queue.read_bytes(), sizeof(BatchUnit)
    units = [BatchUnit.parse(raw[at : at + step]) for at in range(0, len(raw) - step + 1, step)]
    used = [one for one in units if one.physical_offset >= 0 and one.size > 0]
    zeroed(root / LOG / LAST, 0, 8280)
    (one,) = (one for one in found_in(root) if one.code == "CMP-UNIT")
    assert (one.found, one.queue_offset) == (len(used), used[0].base_offset)
    (two,) = (
        one for one in simulate(Store.open(root), "5.3.3").consequences if one.code == "DR-COMPACTION-DAMAGED"
    )
    assert (two.facts["count"], two.paths) == (len(used), (f"{QUEUE}/{LAST}",))


def test_what_is_not_looked_at_is_said(golden: Callable[[str], Golden]) -> None:
    root = golden("b533-compaction").path
    store = Store.open(root)
    run = Verification(store, ReadOptions.of(store), Level.QUICK)
    list(run.findings())
    assert {"compaction log", "compaction queues"} <= set(run.summary()["not_looked_at"])
    unread = simulate(store, "5.3.3", look_back=LookBack(0))
    assert (unread.verdict, unread.not_looked_at[0]) == (Verdict.UNCERTAIN, "compaction")
    said = rmq("doctor", root, "--as-version", "5.3.3", "--budget", "0.000001", "--json")
    assert "compaction" in json.loads(said.stdout)["not_looked_at"]


def test_no_way_leads_to_recover(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`recover` leaves compaction logs as they are."""
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    zeroed(root / LOG / LAST, 300, 8280)
    said = rmq("doctor", root)
    assert "rmqtool recover" not in said.stdout + said.stderr


@pytest.mark.parametrize("more", [False, True])
def test_recover_says_that_it_leaves_them(
    golden: Callable[[str], Golden], tmp_path: Path, more: bool
) -> None:
    """Nothing to change, or something else was changed, and exit 0."""
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    if more:
        (root / "abort").write_bytes(b"")
        shutil.rmtree(root / "consumequeue/TopicCompact")
    zeroed(root / LOG / FIRST, 300, 2000)
    said = rmq("recover", root, "--json")
    summary = json.loads(said.stdout)["summary"]
    assert (said.exit_code, bool(summary["changes"])) == (1, more)
    assert [one for one in summary["checked"]["remains"] if one.startswith("compaction logs have damage: ")]


@pytest.mark.parametrize("case", ["length", "no queue file"])
def test_a_plan_is_not_refused_for_what_a_refused_start_does_not_come_to(
    golden: Callable[[str], Golden], tmp_path: Path, case: str
) -> None:
    """740387: a segment that was cut short ends the start in front of the compaction logs."""
    opened = golden("b533-compaction")
    root = tmp_path / "store"
    shutil.copytree(opened.path, root)
    CASES[case][0](root)
    first = root / f"commitlog/{0:020d}"
    first.write_bytes(first.read_bytes()[:-4096])
    conf = ("--store-config", opened.config_path)
    done = rmq("recover", root, *conf, "--output", tmp_path / "out", "--apply", "--json")
    checked = json.loads(done.stdout)["summary"]["checked"]
    assert (checked["proven"], bool(checked["remains"])) == (True, True)
    assert (tmp_path / "out").is_dir()


def test_files_of_a_tib_take_no_memory(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    for path in (root / LOG / FIRST, root / QUEUE / FIRST):
        os.truncate(path, 1 << 40)
    tracemalloc.start()
    try:
        codes = [one.code for one in found_in(root)]
        verdict = simulate(Store.open(root), "5.3.3").verdict
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (codes.count("DIR-SIZE"), verdict) == (2, Verdict.UNSAFE)
    assert peak < 64 << 20


def test_each_hole_counts_its_own(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    raw, step = (root / QUEUE / FIRST).read_bytes(), sizeof(BatchUnit)
    units = [BatchUnit.parse(raw[at : at + step]) for at in range(0, len(raw) - step + 1, step)]
    whole = [one for one in units if one.physical_offset >= 0 and one.size > 0]
    lost = whole[1:-1:3]
    for one in lost:
        zeroed(root / LOG / FIRST, one.physical_offset, one.physical_offset + one.size)
    gaps = [one for one in found_in(root) if one.code == "CMP-GAP"]
    assert [(one.position, one.found) for one in gaps] == [(one.physical_offset, 1) for one in lost]
    assert len(gaps) > 1


def test_recover_says_that_a_log_cannot_be_read(
    golden: Callable[[str], Golden], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can count what is in it: that was nothing, and exit 0."""

    def unreadable(*_: object, **__: object) -> None:
        raise UnreadableError("compaction", 0, 512, "I/O error")

    root = tmp_path / "store"
    shutil.copytree(golden("b533-compaction").path, root)
    monkeypatch.setattr("rmqtool.check.compaction.compaction_units", unreadable)
    said = rmq("recover", root, "--json")
    remains = json.loads(said.stdout)["summary"]["checked"]["remains"]
    assert (said.exit_code, [one[:27] for one in remains]) == (1, ["compaction logs have damage"])
