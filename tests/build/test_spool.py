"""Parts of a log spooled by themselves give the files that the whole log gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fixtures
from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.index_files import IndexNames
from rmqtool.build.builder import Builder, QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.build.index_cut import SpooledKeys, cut_index
from rmqtool.build.log import build_log
from rmqtool.build.queues import Queues
from rmqtool.build.spool import KeySpool, QueueSpool, SpoolFile, feed, read_frames
from rmqtool.pipeline.parts import log_parts
from rmqtool.scan import kernels_python
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.build.building import build, files_of
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool.broker.file_rules import FileRules

    Part = tuple[str, list[list[tuple[int, int]]], int, SpooledKeys]

BUCKETS = 3


def spool(store: Store, whole: Store, rules: FileRules, place: Path) -> Part:
    """One part of the log of `whole` into files in `place`."""
    place.mkdir()
    with SpoolFile(f"{place}/frames") as frames, SpoolFile(f"{place}/keys") as keyed:
        sink, keys = QueueSpool(frames, BUCKETS), KeySpool(keyed)
        queues = QueueBuilder(
            rules,
            DerivedFiles(place),
            kernels_python,
            lambda topic, _: is_somebodys(whole.topics, topic),
            sink,
        )
        build_log(store.segments, Builder(queues, keys), kernels_python, ReadOptions())
    return frames.path, sink.places, queues.lost, SpooledKeys(keyed.path, keys.keys, keys.first, keys.last)


def in_parts(store: Store, rules: FileRules, work: Path, out: Path, size: int) -> int:
    """Builds from parts of about `size` bytes; how many there were."""
    chosen = [one for one in store.segments if store.segments.by_base(one.base) is one]
    found: list[Part] = []
    parts = log_parts(store, size, chosen.__contains__)
    for first in [part for part in parts if part.number == 0]:
        mine = [part for part in parts if part.segment == first.segment]
        for part in mine:
            view = part.resolved()
            if view is not None:
                found.append(spool(view, store, rules, work / f"{part.segment.base}-{part.number}"))
    out.mkdir()
    for bucket in range(BUCKETS):
        queues = Queues(rules, DerivedFiles(out), kernels_python)
        lost = 0
        for path, places, more, _ in found:
            for frame in read_frames(path, places[bucket]):
                feed(frame, queues, lost)
            lost += more
    files = DerivedFiles(out)
    for share in cut_index([one[-1] for one in found], rules, IndexNames().next_name):
        share.build(rules, files, kernels_python)
    return len(found)


def compare(path: Path, release: str, tmp_path: Path, size: int) -> int:
    store = Store.open(path)
    rules = rules_of(store, release)
    build(store, rules, tmp_path / "whole")
    (tmp_path / "work").mkdir()
    count = in_parts(store, rules, tmp_path / "work", tmp_path / "parts", size)
    whole, parts = files_of(tmp_path / "whole"), files_of(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert [name for name in whole if whole[name] != parts[name]] == []
    names = [sorted(one.name for one in (tmp_path / n / "index").glob("*")) for n in ("whole", "parts")]
    assert names[0] == names[1]
    return count


@pytest.mark.parametrize(
    "name", ["v498-basic", "v498-lmq", "v533-batchcq", "v498-cqext", "v533-compressed", "v533-expired-head"]
)
def test_parts_of_real_stores(golden: Callable[[str], fixtures.Golden], name: str, tmp_path: Path) -> None:
    one = golden(name)
    assert compare(one.path, one.release, tmp_path, 8192) > 2


@pytest.mark.share
@pytest.mark.parametrize(
    "case",
    sampled(list(fixtures.damage_cases())[7::120], kind=lambda case: case.id.partition("-")[0], each=2),
    ids=lambda case: case.id,
)
def test_parts_of_damaged_stores(
    damaged: Callable[[fixtures.DamageCase], Path], case: fixtures.DamageCase, tmp_path: Path
) -> None:
    path = damaged(case)
    if not len(Store.open(path).segments):
        pytest.skip("no log is left")
    compare(path, "5.3.3", tmp_path, 4096)
