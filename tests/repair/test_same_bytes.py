"""Files with holes are compared by their bytes, wherever the holes lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqtool.repair.same_bytes import same_bytes
from rmqtool.store.layout import Store

SIZE = 4 << 20
QUEUE = "consumequeue/T/0/00000000000000000000"
PLACES = (0, 1 << 20, SIZE - 4096)


def sparse(path: Path, places: tuple[int, ...], size: int = SIZE, data: bytes = b"\x01" * 4096) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
        for place in places:
            file.seek(place)
            file.write(data)
    return path


def same(tmp_path: Path, one: Path, other: Path) -> bool:
    assert other == tmp_path / "store" / QUEUE
    (tmp_path / "store/commitlog").mkdir(exist_ok=True)
    found = Store.open(tmp_path / "store").file(QUEUE)
    assert found is not None
    return same_bytes(one, found)


def test_the_same_bytes(tmp_path: Path) -> None:
    built, old = sparse(tmp_path / "built", PLACES), sparse(tmp_path / "store" / QUEUE, PLACES)
    assert same(tmp_path, built, old)
    old.write_bytes(built.read_bytes())  # without a hole
    assert same(tmp_path, built, old)


@pytest.mark.parametrize("lacking", PLACES)
def test_a_part_that_one_of_them_lacks(tmp_path: Path, lacking: int) -> None:
    some = tuple(place for place in PLACES if place != lacking)
    assert not same(tmp_path, sparse(tmp_path / "built", PLACES), sparse(tmp_path / "store" / QUEUE, some))
    assert not same(tmp_path, sparse(tmp_path / "built", some), sparse(tmp_path / "store" / QUEUE, PLACES))


def test_another_byte_or_length(tmp_path: Path) -> None:
    built = sparse(tmp_path / "built", PLACES)
    other = b"\x01" * 4095 + b"\x02"
    assert not same(tmp_path, built, sparse(tmp_path / "store" / QUEUE, PLACES, data=other))
    assert not same(tmp_path, built, sparse(tmp_path / "store" / QUEUE, PLACES, size=SIZE + 20))
