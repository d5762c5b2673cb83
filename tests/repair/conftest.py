from __future__ import annotations

import pytest

from tests.repair.smallstore import make_store


@pytest.fixture
def root(tmp_path):
    return make_store(tmp_path / "store")
