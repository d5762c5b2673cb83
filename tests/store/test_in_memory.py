"""A file of tmpfs does not grow as it is read: holes that a mapping shows take memory there, and stay."""

from __future__ import annotations

import os

import pytest

from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from tests.scan.conftest import compiled_kernels

SIZE = 8 << 20


@pytest.mark.parametrize("sparse", [True, False])
def test_reading_a_hole_takes_no_memory(sparse: bool) -> None:
    assert compiled_kernels().walk
    descriptor = os.memfd_create("segment")
    try:
        os.pwrite(descriptor, b"\x01" * (4096 if sparse else SIZE), 0)
        os.ftruncate(descriptor, SIZE)
        before = os.fstat(descriptor).st_blocks
        file = StoreFile(
            "commitlog/0", f"/proc/self/fd/{descriptor}", FileKind.COMMITLOG, SIZE, before * 512, 0, 0
        )
        with file.open() as source:
            assert int(source.window(0, SIZE).sum()) == (4096 if sparse else SIZE)
            assert source.zero_copy is not sparse
        assert os.fstat(descriptor).st_blocks == before
    finally:
        os.close(descriptor)
