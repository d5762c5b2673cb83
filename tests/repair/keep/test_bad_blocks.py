"""Blocks that the disk does not give, and what donors have for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fixtures.many import Many
from rmqtool.broker.file_rules import FileRules
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.overlay import Patch
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.repair.keep.survey import Surveyor
from rmqtool.scan.engine import choose_kernels
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.disks import BLOCK, break_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.repair.keep.model import Survey

ASKED = [0]


@dataclass(frozen=True)
class Watched(Patch):
    """Counts how often it is asked where it ends."""

    @property
    def end(self) -> int:
        ASKED[0] += 1
        return self.position + self.content.size


def surveyed(
    path: Path, patch: pytest.MonkeyPatch, bad: list[int], given: list[tuple[int, int]]
) -> tuple[Many, Survey]:
    """A log with these bad blocks, for which donors have these ranges."""
    many = Many(1, 1, max(bad) + 2, queue_file=40_000, body=4000)
    root = many.write(path / "store")
    store = Store.open(root, config=config_of(many.settings))
    (segment,) = store.segments
    raw = (root / segment.file.path).read_bytes()
    patches = tuple(Watched(start, Inline(raw[start:end])) for start, end in given)
    break_blocks(patch, {root / segment.file.path: bad})
    ASKED[0] = 0
    placed = PlacedSegment(0, many.segment_size, segment.file.path, segment.file, patches)
    return many, Surveyor(choose_kernels(1), "pread", FileRules()).read([placed])


def test_two_pieces_that_touch_fill_a_bad_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One donor had the first block, another one the second."""
    many, survey = surveyed(tmp_path, monkeypatch, [4, 5], [(4 * BLOCK, 5 * BLOCK), (5 * BLOCK, 6 * BLOCK)])
    assert survey.messages == many.messages
    assert [hole for hole in survey.holes if hole.start < many.messages * many.record_size] == []


def test_a_bad_range_that_is_given_in_part_is_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, survey = surveyed(tmp_path, monkeypatch, [4, 5], [(4 * BLOCK, 5 * BLOCK)])
    assert any("unreadable" in hole.reasons for hole in survey.holes)


def test_the_time_for_bad_blocks_grows_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = list(range(0, 1200, 2))
    many, survey = surveyed(tmp_path, monkeypatch, bad, [(one * BLOCK, (one + 1) * BLOCK) for one in bad])
    assert survey.messages == many.messages
    assert ASKED[0] < 50 * len(bad)
