"""Tests of the room that stores messages."""

from __future__ import annotations

import pytest

# what the looks at settings assert shows its values, as in modules of tests
pytest.register_assert_rewrite("tests.messagestore.effects")
