from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.repair.smallstore import make_store


@pytest.fixture
def tmp_path(tmp_path):
    """In memory where the machine has such a place: every step is synced."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)


@pytest.fixture
def root(tmp_path):
    return make_store(tmp_path / "store")
