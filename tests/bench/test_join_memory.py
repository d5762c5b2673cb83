"""A shuffle join's workers do not grow with the keys; those of a broadcast join do."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.joining import HITS, make_store, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.bench,
    pytest.mark.full,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="needs Java"),
]

FEW, MANY = 100_000, 2_000_000
SLACK = 64
"""MiB that a worker may have more: 4 of the sieve, the rest is what batches happen to take"""


@pytest.mark.parametrize("source", ["auto", "scan"])
def test_workers_of_a_shuffle_join_do_not_grow_with_the_keys(bench_directory: Path, source: str) -> None:
    root = make_store(bench_directory)
    few, many = (run(root, "shuffle", source, count) for count in (FEW, MANY))
    assert min(few.found, many.found) > HITS // 2
    assert few.found == many.found
    assert many.worker <= few.worker + SLACK
