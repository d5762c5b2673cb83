"""The store that most tests of repairing damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import copy_base
from tests.repair.keep.seven import BASE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A healthy store of seven segments."""
    return copy_base(BASE, tmp_path / "store")
