"""Digests of what is kept before a change."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from rmqtool.repair.regions import sha256_of_file

if TYPE_CHECKING:
    from pathlib import Path

TIB = 1 << 40


def test_a_digest_is_that_of_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc" * 5000)
    assert sha256_of_file(str(path)) == hashlib.sha256(b"abc" * 5000).hexdigest()
    assert sha256_of_file(str(path), 3, 6) == hashlib.sha256(b"abcabc").hexdigest()


def test_a_digest_reads_no_hole_of_what_no_broker_maps(tmp_path: Path) -> None:
    """It tells contents apart, not whether zeros are a hole."""
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        with path.open("wb") as file:
            file.write(b"abc")
            file.seek(TIB // 2 - 1)
            file.write(b"xyz")
            file.truncate(TIB)
    digest = sha256_of_file(str(one))
    assert digest.startswith("data:")
    with other.open("r+b") as file:
        file.seek(TIB // 4)
        file.write(bytes(9000))
    assert sha256_of_file(str(other)) == digest
    with other.open("r+b") as file:
        file.seek(TIB // 4)
        file.write(b"\1")
    assert sha256_of_file(str(other)) != digest
    os.truncate(other, 1 << 33)
    assert sha256_of_file(str(other)) != digest
