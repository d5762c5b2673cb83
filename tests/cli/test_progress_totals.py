"""What progress says will be read is what is read: no command stands at 100 %, or ends far in front of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import apply_case, damage_case
from fixtures.damage import copy_base
from fixtures.stores import healthy_store
from rmqtool.check.verify import Verification
from rmqtool.output import progress
from rmqtool.recovery.diagnosis import Diagnosis
from rmqtool.recovery.simulation import reading_for
from rmqtool.scan import options as how_to_read
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
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
    "doctor --what-if start-twice", "recover --policy broker",
)  # fmt: skip


@pytest.mark.share
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


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[int, int]]]:
    """By label what was done when a total was told, and the total; at last what was done in the end."""
    found: dict[str, list[tuple[int, int]]] = {}

    class Watched(progress.Progress):
        def _grow(self, total: int) -> None:
            found.setdefault(self._label, []).append((self._done, total))
            super()._grow(total)

        def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - handed on
            if self._total:
                found[self._label].append((self._done, self._total))
            super().__exit__(*error)

    monkeypatch.setattr(progress, "Progress", Watched)
    return found


Told = dict[str, list[tuple[int, int]]]


def assert_known_before(told: Told) -> None:
    """Totals are told in front of everything, and reached."""
    for label, (*before, (done, total)) in told.items():
        assert done == total == before[-1][1], label
        assert {at for at, _ in before} == {0}, label


@pytest.mark.share
@pytest.mark.parametrize("base", ["v533-a-crash", "v533-a-clean", "v498-a-crash"])
@pytest.mark.parametrize("name", STARTS)
def test_the_total_of_starts_is_known_before_the_log_is_read_and_reached(
    name: str, base: str, tmp_path: Path, told: Told
) -> None:
    command, *options = name.split()
    assert rmq(command, copy_base(base, tmp_path / "store"), *options).exit_code in {0, 1}
    assert told["reading"]
    assert_known_before(told)


REPAIRED = (
    "v498-record-body-first-last-abort0", "v533-cq-all-zero-bytes-abort",
    "v533-layout-first-renamed-gap-clean",
)  # fmt: skip


@pytest.mark.share
@pytest.mark.parametrize("name", ["v533-a-crash", "v498-a-crash", *REPAIRED])
def test_what_recover_reads_and_checks_is_known_before(name: str, tmp_path: Path, told: Told) -> None:
    root = tmp_path / "store"
    if name in REPAIRED:
        apply_case(damage_case(name), root)
    else:
        copy_base(name, root)
    assert rmq("recover", root).exit_code == 1
    assert set(told) == {"reading", "checking"}
    assert_known_before(told)


@pytest.mark.parametrize("name", ["v533-block-zero-4096-mid-abort0", "v533-rebuild-queueid-clean"])
def test_what_only_turns_out_to_be_read_is_not_more_than_all(name: str, tmp_path: Path, told: Told) -> None:
    """An index that has to be made again, records that are held against starts of the store as it is."""
    assert rmq("recover", apply_case(damage_case(name), tmp_path / "store")).exit_code == 1
    assert len({total for _, total in told["reading"]}) > 2
    for *before, (done, total) in told.values():
        assert done == total
        assert all(at <= known for (at, _), (_, known) in zip(before[1:], before, strict=False))


@pytest.mark.share
@pytest.mark.parametrize("options", [(), ("--budget", "600"), ("--jobs", "1")])
@pytest.mark.parametrize("name", ["v533-tail-half-record-abort", "v533-block-zero-4096-mid-abort0"])
def test_progress_of_starts_that_part_neither_goes_back_nor_stands_at_the_end(
    name: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    ends: list[tuple[int, int | None]] = []

    class Watched(progress.Progress):
        def _draw(self) -> None:
            if self._label == "reading":
                shares.append(self.share)

        def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - handed on
            if self._label == "reading":
                ends.append((self._done, self._total))
            super().__exit__(*error)

    monkeypatch.setattr(progress, "Progress", Watched)
    asked = ("--what-if", "remove-abort", "--what-if", "start-twice")
    done = rmq("doctor", apply_case(damage_case(name), tmp_path / "store"), *asked, *options)
    assert done.exit_code in {0, 1}, done.stderr
    assert shares == sorted(shares)
    assert max(shares) <= progress.MOST
    assert [done for done, _ in ends] == [total for _, total in ends]


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


@pytest.mark.parametrize("name", ["store groups", "offsets audit", "query-offset", "query-time", "report"])
def test_the_log_behind_queues_without_their_last_file_is_announced(
    name: str, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[int | None] = []

    class Asked(Access):
        @classmethod
        def of(cls, bytes_per_second: int | None, **more: Any) -> Access:
            rates.append(bytes_per_second)
            return super().of(bytes_per_second, **more)

    monkeypatch.setattr(how_to_read, "Access", Asked)
    root = healthy_store().write(tmp_path / "store").root
    for file in sorted((root / "consumequeue/Orders/1").iterdir())[-1:]:
        file.unlink()
    place = {"query-offset": ("Orders", 1, "max"), "query-time": ("Orders", 1, "now")}.get(name, ())
    more = ("--output", tmp_path / "a.html", "--plan", "never") if name == "report" else ()
    done = rmq(*name.split(), root, *place, *more, "--max-read-rate", "1GiB")
    assert done.exit_code in {1, 3}, done.stderr
    done_bytes, total = told["reading"][-1]
    assert done_bytes == total > 4096
    assert set(rates) == {1 << 30}


def test_holes_of_queues_and_index_are_not_counted(tmp_path: Path) -> None:
    root = copy_base("v533-a-crash", tmp_path / "store")
    before = Verification(Store.open(root), ReadOptions()).bytes_to_read
    for path in [*root.glob("consumequeue/*/*/*"), *root.glob("index/*")]:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + (64 << 20))
    assert Verification(Store.open(root), ReadOptions()).bytes_to_read < before + (64 << 20)
