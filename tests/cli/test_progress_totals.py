"""What progress says will be read is what is read: no command stands at 100 %, or ends far in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fixtures.damage import copy_base
from rmqtool.check.verify import Verification
from rmqtool.output import progress
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": (), "doctor": (), "doctor --full --what-if delete-consumequeue": (), "dump": (), "stats": (),
    "report": ("--output", "NEW/a.html", "--plan", "never"), "recover": (), "rebuild": (),
    "query-key --source scan": ("none",), "query-id": ("none",), "trace --source scan": ("none",),
}  # fmt: skip
LEAST, MOST = 0.8, 1.1


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


def test_holes_of_queues_and_index_are_not_counted(tmp_path: Path) -> None:
    root = copy_base("v533-a-crash", tmp_path / "store")
    before = Verification(Store.open(root), ReadOptions()).bytes_to_read
    for path in [*root.glob("consumequeue/*/*/*"), *root.glob("index/*")]:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + (64 << 20))
    assert Verification(Store.open(root), ReadOptions()).bytes_to_read < before + (64 << 20)
