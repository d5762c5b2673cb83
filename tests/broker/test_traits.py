"""Which behaviour a release has; what the behaviours are is asked of starts."""

from __future__ import annotations

import pytest

from rmqtool.broker.traits import TABLE, behaviours, traits_of
from rmqtool.errors import UsageError
from rmqtool.store.releases import RELEASES, between, version_key


@pytest.mark.parametrize(
    ("release", "since"),
    [
        ("4.0.0", "4.9.0"),
        ("4.9.1", "4.9.0"),
        ("4.9.2", "4.9.2"),
        ("4.9.3", "4.9.3"),
        ("4.9.8", "4.9.4"),
        ("5.0.0", "5.0.0"),
        ("5.1.2", "5.1.1"),
        ("5.1.4", "5.1.3"),
        ("5.3.1", "5.3.0"),
        ("5.3.3", "5.3.2"),
        ("6.0.0", "5.3.2"),
    ],
)
def test_a_release_behaves_like_the_last_change_before_it(release: str, since: str) -> None:
    assert traits_of(release).since == since


def test_the_table_ascends() -> None:
    assert [one.since for one in TABLE] == sorted((one.since for one in TABLE), key=version_key)
    assert {one.since for one in TABLE} <= set(RELEASES)


def test_one_release_stands_for_each_behaviour() -> None:
    assert list(behaviours(between("5.1.3", "5.3.3"))) == ["5.1.4", "5.2.0", "5.3.1", "5.3.3"]


@pytest.mark.parametrize("text", ["", "5.x", "latest"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        traits_of(text)
