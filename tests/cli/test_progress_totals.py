"""What progress says will be read is what is read: no command stands at 100 %, or ends far in front of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import apply_case, damage_case
from fixtures.damage import copy_base
from rmqtool.check.verify import Verification
from rmqtool.output import progress
from rmqtool.recovery.diagnosis import Diagnosis
from rmqtool.recovery.simulation import reading_for
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": (), "doctor": (), "dump": (), "stats": (),
    "report": ("--output", "NEW/a.html", "--plan", "never"), "recover": (), "rebuild": (),
    "query-key --source scan": ("none",), "query-id": ("none",), "trace --source scan": ("none",),
}  # fmt: skip
LEAST, MOST = 0.8, 1.1
STARTS = (
    "doctor", "doctor --full", "doctor --full --what-if delete-consumequeue --what-if remove-abort",
    "recover --policy broker",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_total_is_what_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int | None, int]] = []

    class Watched(progress.Progress):
        def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - handed on
            seen.append((self._label, self._total, self._done))
            super().__exit__(*error)

    monkeypatch.setattr(progress, "Progress", Watched)
    command, *options = name.split()
    further = [one.replace("NEW", str(tmp_path)) for one in COMMANDS[name]]
    done = rmq(command, copy_base("v533-a-crash", tmp_path / "store"), *options, *further)
    assert done.exit_code in {0, 1}, done.stderr
    counted = {label: read / total for label, total, read in seen if total}
    assert counted
    assert {label: ratio for label, ratio in counted.items() if not LEAST <= ratio <= MOST} == {}


@pytest.mark.parametrize("base", ["v533-a-crash", "v533-a-clean", "v498-a-crash"])
@pytest.mark.parametrize("name", STARTS)
def test_the_total_of_starts_is_known_before_the_log_is_read_and_reached(
    name: str, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals: dict[str, list[int]] = {}
    done: dict[str, int] = {}

    class Watched(progress.Progress):
        def expect(self, total: int) -> None:
            totals.setdefault(self._label, []).append(total)
            super().expect(total)

        def expect_more(self, count: int) -> None:
            self.expect(self._done + count)

        def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - handed on
            done[self._label] = self._done
            super().__exit__(*error)

    monkeypatch.setattr(progress, "Progress", Watched)
    command, *options = name.split()
    assert rmq(command, copy_base(base, tmp_path / "store"), *options).exit_code in {0, 1}
    assert totals["reading"]
    assert {label: [done[label]] for label in totals} == totals


def test_a_release_that_parts_from_another_in_the_log_is_read_besides(tmp_path: Path) -> None:
    case = damage_case("v533-tail-half-record-abort")
    store = Store.open(apply_case(case, tmp_path / "store"))
    totals: list[int] = []
    read: list[int] = []
    diagnosis = Diagnosis(store, None)
    diagnosis.run([], replace(reading_for(store), advance=read.append), expect=totals.append)
    assert len(diagnosis.outcomes) > 1
    assert totals == sorted(totals)
    assert len(totals) > 1
    assert sum(read) == totals[-1]


def test_holes_of_queues_and_index_are_not_counted(tmp_path: Path) -> None:
    root = copy_base("v533-a-crash", tmp_path / "store")
    before = Verification(Store.open(root), ReadOptions()).bytes_to_read
    for path in [*root.glob("consumequeue/*/*/*"), *root.glob("index/*")]:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + (64 << 20))
    assert Verification(Store.open(root), ReadOptions()).bytes_to_read < before + (64 << 20)
