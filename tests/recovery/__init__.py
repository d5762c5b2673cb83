"""Tests of the room that predicts starts."""

from __future__ import annotations

import pytest

# what a test failed to show is in the message, as in modules of tests
pytest.register_assert_rewrite("tests.recovery.showing")
