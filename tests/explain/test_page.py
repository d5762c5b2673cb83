"""The page of log lines is the table's."""

from __future__ import annotations

from tests.helpers import assert_page_is_current


def test_the_page_of_log_lines_is_current() -> None:
    assert_page_is_current("log_lines_page.py")
