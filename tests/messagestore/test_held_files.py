"""Files that threads share while one of them lets go of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqtool.messagestore.held_files import HeldFiles
from rmqtool.store.bytes import FileSource
from tests.scan.conftest import compiled_kernels


def let_go(held: HeldFiles, how: str) -> None:
    """The file that is held goes: it expires, others push it out, or the store is closed."""
    if how == "expired":
        held.release("a")
    elif how == "pushed out":
        held.size("b")
    else:
        held.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("how", ["expired", "pushed out", "closed"])
def test_a_source_stays_open_as_long_as_it_is_referenced(tmp_path: Path, how: str) -> None:
    """The length is asked of its own file, never of a descriptor that is closed or another file's by then."""
    assert compiled_kernels().walk
    (tmp_path / "a").write_bytes(bytes(range(100)))
    (tmp_path / "b").write_bytes(b"b")
    held = HeldFiles(lambda path: str(tmp_path / path), 1)
    before = descriptors()
    source = held.source("a")
    assert isinstance(source, FileSource)
    window = source.window(0, 10)
    let_go(held, how)
    with open(tmp_path / "b", "rb"):  # would get the number of a descriptor that is closed
        assert source.size_now() == 100
        assert source.window(90, 100).tobytes() == bytes(range(90, 100))
    held.close()
    assert descriptors() > before
    del source
    assert window.tobytes() == bytes(range(10))
    del window
    assert descriptors() == before


def test_closing_such_a_source_twice_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    source = FileSource(os.open(tmp_path / "a", os.O_RDONLY), "a")
    before = descriptors()
    source.close_when_dropped()
    source.close()
    other = os.open(tmp_path / "a", os.O_RDONLY)
    source.close()
    del source
    assert os.fstat(other).st_size == 1
    os.close(other)
    assert descriptors() == before - 1
