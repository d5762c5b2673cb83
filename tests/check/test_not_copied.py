"""What a copy lacks is one finding, entries that lead there are counted, and all else is checked as ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.stores import healthy_store
from rmqtool.check.levels import Level
from rmqtool.check.records_at import RecordsAt
from rmqtool.check.verify import Verification
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from rmqtool.store.partial import NAME, listing_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fixtures.stores import HandmadeStore

LACKING = (0, 1, 2, 4)
"""segments that are not copied, in two runs"""


def copied(store: HandmadeStore, root: Path, lacking: Sequence[int] = LACKING) -> list[str]:
    store.write(root)
    (root / NAME).write_bytes(b"".join(listing_of(Store.open(root).files)))
    segments = sorted(path.name for path in (root / "commitlog").iterdir())
    for number in lacking:
        (root / "commitlog" / segments[number]).unlink()
    return segments


def verified(root: Path, level: Level = Level.DEFAULT) -> Verification:
    run = Verification(Store.open(root), ReadOptions(), level)
    run.found = list(run.findings())  # type: ignore[attr-defined]
    return run


def findings(run: Verification) -> list[tuple[str, str | None, str]]:
    return [(one.code, one.path, one.message) for one in run.found if one.severity.value != "note"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("level", [Level.DEFAULT, Level.QUICK])
def test_one_finding_a_run_of_segments(level: Level, tmp_path: Path) -> None:
    segments = copied(healthy_store(), tmp_path)
    run = verified(tmp_path, level)
    many = f", as well as the 2 segments that follow, up to commitlog/{segments[2]}"
    assert findings(run) == [
        ("DIR-UNREADABLE", f"commitlog/{segments[0]}", f"cannot be read: was not copied{many}"),
        ("DIR-UNREADABLE", f"commitlog/{segments[4]}", "cannot be read: was not copied"),
    ]
    summary = run.summary()
    size = (tmp_path / "commitlog" / segments[3]).stat().st_size
    assert [(one["position"], one["length"]) for one in summary["not_covered"]] == [(0, 3 * size), (0, size)]
    assert not summary["complete"]


def test_entries_that_lead_there_are_counted_and_no_claimed_one_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = healthy_store()
    segments = copied(store, tmp_path)
    asked: list[int] = []
    get = RecordsAt.get
    monkeypatch.setattr(RecordsAt, "get", lambda own, offset: asked.append(offset) or get(own, offset))
    (units, index) = verified(tmp_path).summary()["not_looked_at"][-2:]
    gone = [one for number in LACKING for one in store.inside(number)]
    assert units.endswith("consume queue entries for segments that were not copied")
    assert index.endswith("index entries for segments that were not copied")
    assert 0 < int(units.split()[0]) <= len(gone) + len(segments)
    assert {one.topic for one in store.stored if one.offset in asked} <= {"Batches"}  # each is read anyway


def test_a_wrong_entry_beside_them_is_found(tmp_path: Path) -> None:
    store = healthy_store()
    segments = copied(store, tmp_path)
    there = next(one for one in store.inside(3) if (one.topic, one.queue_id) == ("Orders", 0))
    queue = tmp_path / "consumequeue" / "Orders" / "0"
    place = next(
        (path, at)
        for path in queue.iterdir()
        if (at := path.read_bytes().find(there.offset.to_bytes(8, "big"))) >= 0 and at % 20 == 0
    )
    with place[0].open("r+b") as file:
        file.seek(place[1])
        file.write((there.offset + 7).to_bytes(8, "big"))
    codes = {code for code, _, _ in findings(verified(tmp_path))}
    assert {"CQ-DANGLING", "X-GHOST"} <= codes
    assert segments
