"""Records are encoded in batches."""

from __future__ import annotations

import pytest

from tests.bench.encoding import against_single_records

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]


@pytest.mark.parametrize("body_bytes", [256, pytest.param(1024, marks=pytest.mark.full)])
def test_a_batch_is_encoded_faster_than_its_records(body_bytes: int) -> None:
    figure = against_single_records(body_bytes)
    assert figure.held(), figure.cells()
