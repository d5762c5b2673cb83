"""Hours at which a broker deletes."""

from __future__ import annotations

import pytest

from rmqtool.broker.expiry import look
from rmqtool.store.config import StoreConfig


@pytest.mark.parametrize(
    ("when", "due"),
    [
        ("04", True),
        ("4;13", True),
        ("13;4;", True),
        ("13", False),
        ("+4", True),
        ("\u0664", True),
        ("13; 4", False),
        ("4;x", True),
        ("x;4", False),
        ("4" * 5000, False),
    ],
)
def test_hours_are_parsed_as_by_java(when: str, due: bool) -> None:
    """`UtilAll#isItTimeToDo` throws at what is not a number, and the look ends there: a full disk, too."""
    config = StoreConfig(delete_when=when)
    assert look(config, 10, 4).due is due
    throws = when in {"13; 4", "x;4"} or len(when) > 99
    assert look(config, 99, 4).full is not throws
