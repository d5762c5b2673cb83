"""Entries of light queues count by place, apart from those of a file that is another queue's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.handmade import HandmadeQueue, plain_unit
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit, make_planned
from rmqtool.repair.prove.checks import check_keep
from rmqtool.repair.prove.light import LightOrder
from rmqtool.repair.prove.result import store_with
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.repair.keep.test_counted import SETTINGS, A, B, LightStore, recovered, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = f"{0:020d}"


def moved(root: Path, path: str, units: bytes) -> bool:
    """Whether a plan that writes these units over the file's is held against it."""
    source = Store.open(root, config=config_of(dict(SETTINGS)))
    change = Change(action=Action.WRITE, path=path, position=0, length=len(units), why="test", message="-")
    after = store_with(source, [Edit(change, Inline(units))])
    file = source.file(path)
    assert file is not None
    last = max(strict.carve(root))
    return LightOrder(source, after, Access("pread"), last, choose_kernels(0)).moves(file, after.file(path))


@pytest.mark.parametrize("queue", [A, B])
def test_entries_that_a_broker_wrote_move_nowhere(tmp_path: Path, queue: str) -> None:
    """Prepared records between them state offsets, and have no entry."""
    store = written().write(tmp_path / "store")
    for path in sorted(one for one in store.files() if one.startswith(f"consumequeue/{queue}/")):
        units = store.read(path)
        assert not moved(store.root, path, units)
        assert moved(store.root, path, bytes(20) + units[:-20])


@pytest.mark.parametrize(
    ("slot", "wrong"),
    [
        (5, lambda units: units[:100] + units[120:] + bytes(20)),  # those behind the damage move
        (12, lambda units: units[:240] + bytes(60)),  # they are lost
        (14, lambda units: units[20:] + bytes(20)),
    ],
)
def test_damage_in_a_file_is_no_leave_for_what_is_right_in_it(
    tmp_path: Path, slot: int, wrong: Callable[[bytes], bytes]
) -> None:
    """Entries that lead to records which state just their place were not held against a plan there."""
    store = LightStore()
    for _ in range(15):
        store.light(A)
    store.write(tmp_path / "store")
    path = f"consumequeue/{A}/0/{FIRST}"
    right = store.read(path)
    store.patch(path, slot * 20, plain_unit(77, 123, 0))
    source = Store.open(store.root, config=config_of(dict(SETTINGS)))
    for units, proven in ((right, True), (wrong(right), False)):
        change = Change(
            action=Action.WRITE, path=path, position=0, length=len(units), why="test", message="-"
        )
        planned = make_planned(
            "recover", source, "5.3.3", {"policy": "keep"}, [Edit(change, Inline(units))], inputs=source.files
        )
        assert check_keep(source, planned, ReadOptions()).proven is proven


def test_one_right_entry_among_very_many(tmp_path: Path) -> None:
    """Wherever it stands: of 10,000 entries and more some were looked at, and the plan was called proven."""
    count, right = 10_012, 5_001
    store = LightStore()
    store.log.segment_size = 1 << 23
    store.queues[A, 0] = HandmadeQueue(f"consumequeue/{A}/0", units=count + 10)
    for _ in range(count):
        store.light(A)
    store.write(tmp_path / "store")
    path = f"consumequeue/{A}/0/{FIRST}"
    units = store.read(path)
    wrong = bytearray(units[20 : 20 * count] + units[:20])  # each leads to the next one's record
    keeps = bytearray(units[: 20 * count])
    wrong[20 * right : 20 * right + 20] = units[20 * right : 20 * right + 20]
    store.patch(path, 0, bytes(wrong))
    sizes = {"mappedFileSizeCommitLog": 1 << 23, "mappedFileSizeConsumeQueue": 20 * (count + 10)}
    source = Store.open(store.root, config=config_of({**SETTINGS, **sizes}))
    for lost in (False, True):
        if lost:
            keeps[20 * right : 20 * right + 20] = plain_unit(0, 0x7FFFFFFF, 0)
        change = Change(
            action=Action.WRITE, path=path, position=0, length=len(keeps), why="test", message="-"
        )
        after = store_with(source, [Edit(change, Inline(bytes(keeps)))])
        file = source.file(path)
        assert file is not None
        order = LightOrder(source, after, Access("pread"), store.stored[-1].offset, choose_kernels())
        assert order.loses(file, after.file(path)) is lost


def test_entries_of_another_queue_count_nothing(tmp_path: Path) -> None:
    """Law seed 12633: a file was copied over one of a queue whose records the entries pass over."""
    store = written().write(tmp_path / "store")
    path = f"consumequeue/{A}/0/{FIRST}"
    was = store.read(path)
    store.patch(path, 0, store.read(f"consumequeue/{B}/0/{FIRST}"))
    assert not moved(store.root, path, was)


def test_a_message_that_is_lost_proves_nothing(tmp_path: Path) -> None:
    """What a plan puts in its place may name any queue."""
    store = written().write(tmp_path / "store")
    path = f"consumequeue/{A}/0/{FIRST}"
    was = store.read(path)
    lost = store.stored[3]
    store.patch(*store.segment(lost.offset), bytes(lost.size))
    store.patch(path, 0, was[:60] + was[80:] + bytes(20))
    assert moved(store.root, path, was)


def test_a_copied_file_is_put_right(tmp_path: Path) -> None:
    store = LightStore()
    for number in range(15):
        store.light(*((A, B) if number % 3 else (A,)))
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    store.patch(f"consumequeue/{A}/0/{FIRST}", 0, store.read(f"consumequeue/{B}/0/{FIRST}"))
    assert strict.entries(recovered(store, tmp_path)) == was
