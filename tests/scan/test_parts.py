"""Runs cut by what they need in memory: stored bytes, and what bodies inflate to."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import lz4.frame
import numpy as np
import pytest
import zstandard

from formats.commitlog import encode_message
from rmqtool.scan import kernels_python
from rmqtool.scan import parts as parts_module
from rmqtool.scan.bodies import PLAIN_LIMIT
from rmqtool.scan.budget import KEPT_BACK, LIMIT
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field
from rmqtool.scan.parallel import WorkerContext
from rmqtool.scan.parts import BATCH_BYTES, cut, parts
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ZLIB, LZ4, ZSTD = 0x1, 0x101, 0x201
COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    ZLIB: zlib.compress,
    LZ4: lz4.frame.compress,
    ZSTD: zstandard.ZstdCompressor().compress,
}


class Asked(WorkerContext):
    """Notes what is taken from it."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def take(self, count: int) -> None:
        self.taken.append(count)

    def since(self) -> int:
        total = sum(self.taken)
        self.taken.clear()
        return total


def run_of(bodies: Sequence[tuple[int, bytes]]) -> Records:
    """Records with these bodies, each compressed as its flag says."""
    data = b"".join(encode_message("T", COMPRESS[flag](body), sys_flag=flag) for flag, body in bodies)
    return scanned(data, len(bodies))


def scanned(data: bytes, count: int) -> Records:
    rows = np.zeros((count, ROW_WIDTH), np.int64)
    window = np.frombuffer(data, np.uint8)
    status = np.zeros(STATUS_WIDTH, np.int64)
    kernels_python.walk(window, 0, 0, len(data), 0, int(Check.ALL), rows, status)
    assert status[0] == count
    return Records(rows, window, 0)


def bare(lengths: Sequence[int]) -> Records:
    rows = np.zeros((len(lengths), ROW_WIDTH), np.int64)
    rows[:, Field.BODY_LENGTH] = lengths
    rows[:, Field.STORE_SIZE] = np.maximum(lengths, 0) + 91
    rows[:, Field.POSITION] = range(len(lengths))
    return Records(rows, np.zeros(1, np.uint8), 0)


@pytest.mark.parametrize(
    "lengths",
    [
        [],
        [0],
        [5],
        [100] * 40,
        [-1] * 10,
        [1 << 20] * 20,
        [9 << 20] * 3,
        [0, 9 << 20, 0, 0, 3 << 20, 1, -5, 2 << 20],
    ],
)
def test_cut_by_stored_bytes(lengths: list[int]) -> None:
    some = list(cut(bare(lengths)))
    assert [p for part in some for p in part.rows[:, Field.POSITION].tolist()] == list(range(len(lengths)))
    for number, part in enumerate(some):
        total = int(part.rows[:, Field.STORE_SIZE].sum())
        assert len(part.rows) == 1 or total <= BATCH_BYTES
        if number:
            before = int(some[number - 1].rows[:, Field.STORE_SIZE].sum())
            assert before + part.rows[0, Field.STORE_SIZE] > BATCH_BYTES, "no part is cut without need"


@pytest.mark.parametrize("flag", [ZLIB, LZ4, ZSTD])
def test_small_bombs_share_no_batch(flag: int) -> None:
    """A few hundred bytes each as stored; three megabytes inflated."""
    records = run_of([(flag, bytes(3 << 20))] * 3 + [(0, b"x"), (flag, b"y" * 1000)])
    worker = Asked()
    found = []
    for part in parts(records, worker, plain=True):
        assert part.plain is not None
        size = sum(len(body or b"") for body in part.plain)
        assert size <= BATCH_BYTES
        assert worker.since() >= size
        found.append([len(body or b"") for body in part.plain])
    assert found == [[3 << 20], [3 << 20], [3 << 20, 1, 1000]]


@pytest.mark.parametrize("flag", [ZLIB, LZ4, ZSTD])
def test_a_large_body_is_alone_and_paid_for(flag: int) -> None:
    large = bytes(BATCH_BYTES + 1)
    records = run_of([(flag, b"a"), (flag, large), (0, b"b"), (flag, b"c")])
    worker = Asked()
    taken, plain = [], []
    for part in parts(records, worker, plain=True):
        taken.append(worker.since())
        plain.append(part.plain)
    assert plain == [[b"a"], [large], [b"b", b"c"]]
    assert [count >= 2 * PLAIN_LIMIT for count in taken] == [False, True, False]


def test_what_a_large_body_takes_is_kept_back_for_it() -> None:
    assert 2 * PLAIN_LIMIT + 2 * BATCH_BYTES <= KEPT_BACK <= LIMIT


@pytest.mark.parametrize("beyond", [False, True])
def test_the_largest_body_that_is_inflated(monkeypatch: pytest.MonkeyPatch, beyond: bool) -> None:
    monkeypatch.setattr(parts_module, "BATCH_BYTES", 1000)
    records = run_of([(ZLIB, bytes(PLAIN_LIMIT + beyond)), (ZLIB, b"next")])
    first, second = (part.plain for part in parts(records, Asked(), plain=True))
    assert first == [None] if beyond else first == [bytes(PLAIN_LIMIT)]
    assert second == [b"next"]


def test_a_broken_body_costs_nothing_more() -> None:
    data = encode_message("T", b"no stream", sys_flag=ZSTD) + encode_message("T", b"good")
    worker = Asked()
    (part,) = parts(scanned(data, 2), worker, plain=True)
    assert part.plain == [None, b"good"]
    assert worker.since() < 2 * PLAIN_LIMIT


@pytest.mark.parametrize("records", [run_of([(0, b"a"), (0, b"b")]), run_of([(ZLIB, b"a")])])
def test_nothing_is_inflated_that_nobody_wants(records: Records) -> None:
    (part,) = parts(records, Asked(), plain=False)
    assert part.plain is None


def test_plain_bodies_given_make_the_same_columns() -> None:
    records = run_of([(ZLIB, b"one" * 50), (0, b"two"), (ZSTD, b""), (LZ4, b"four" * 9)])
    names = ["body", "plain_body", "plain_length", "body_sha256", "plain_body_sha256"]
    given: dict[str, Any] = {"base": 0, "path": "p", "kernels": kernels_python, "columns": names}
    (part,) = parts(records, Asked(), plain=True)
    batch = to_batch(part.records, plain=part.plain, **given)
    batch.validate(full=True)
    assert batch == to_batch(records, **given)
    assert batch["plain_body"].to_pylist() == [b"one" * 50, b"two", b"", b"four" * 9]
