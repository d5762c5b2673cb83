"""Streams to write to."""

from __future__ import annotations

import io

import pytest

from rmqtool.output.stream import ByteOut


@pytest.fixture
def sink() -> io.BytesIO:
    """What was written."""
    return io.BytesIO()


@pytest.fixture
def out(sink: io.BytesIO) -> ByteOut:
    """Writes to `sink`."""
    return ByteOut(sink)
