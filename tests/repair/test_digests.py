"""Digests of what plans and journals speak of."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from rmqtool.repair.content import FromFile, Inline, Joined, Zeros
from rmqtool.repair.digests import sha256_of, sha256_of_file

if TYPE_CHECKING:
    from pathlib import Path

TIB = 1 << 40


def sparse(path: Path) -> str:
    """A TiB with three bytes at its beginning and three in its middle."""
    with path.open("wb") as file:
        file.write(b"abc")
        file.seek(TIB // 2 - 1)
        file.write(b"xyz")
        file.truncate(TIB)
    return str(path)


def patched(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_a_digest_is_that_of_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc" * 500_000)
    assert sha256_of_file(str(path)) == hashlib.sha256(b"abc" * 500_000).hexdigest()
    assert sha256_of_file(str(path), 3, 6) == hashlib.sha256(b"abcabc").hexdigest()
    assert sha256_of(Inline(b"abc")) == hashlib.sha256(b"abc").hexdigest()


def test_a_digest_reads_no_holes(tmp_path: Path) -> None:
    """It tells contents apart, not whether zeros are a hole."""
    other = tmp_path / "other"
    digest = sha256_of_file(sparse(tmp_path / "one"))
    sparse(other)
    assert digest.startswith("data:")
    patched(other, TIB // 4, bytes(9000))
    assert sha256_of_file(str(other)) == digest
    patched(other, TIB // 4, b"\1")
    assert sha256_of_file(str(other)) != digest
    patched(other, TIB // 4, b"\0")
    os.truncate(other, TIB - 1)
    assert sha256_of_file(str(other)) != digest


def test_a_digest_has_the_form_of_the_one_it_is_compared_with(tmp_path: Path) -> None:
    """A file that was copied without its holes is the same file."""
    holes, full = tmp_path / "holes", tmp_path / "full"
    holes.write_bytes(b"abc")
    os.truncate(holes, 4 << 20)
    full.write_bytes(holes.read_bytes())
    ours, theirs = sha256_of_file(str(holes)), sha256_of_file(str(full))
    assert ours != theirs
    assert sha256_of_file(str(full), like=ours) == ours
    assert sha256_of_file(str(holes), like=theirs) == theirs


def test_a_digest_of_what_a_plan_writes_does_not_depend_on_where_it_lies(tmp_path: Path) -> None:
    path = sparse(tmp_path / "one")
    parts = Inline(b"abc"), Zeros(TIB // 2 - 4), Inline(b"xyz"), Zeros(TIB // 2 - 2)
    assert sha256_of(FromFile(path, 0, TIB)) == sha256_of(Joined(parts)) == sha256_of_file(path)
    assert sha256_of(FromFile(path, 1, TIB - 1)) == sha256_of(Joined((Inline(b"bc"), *parts[1:])))
