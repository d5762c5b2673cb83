"""Every strategy gives every client what Java's gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import require
from tests.interop.javastore import JavaProcess
from tests.query.assignment.grid import ALL, CLIENTS, QUEUES, ROOMS, SHARE, cases, numbers_of, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=["5.3.3", pytest.param("4.9.7", marks=pytest.mark.full)])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaProcess]:
    release = require(request.config, request.param, "client")
    place: Path = tmp_path_factory.mktemp("client")
    java = JavaProcess(release, place, artifact="client")
    try:
        yield java
    finally:
        java.kill()


@pytest.mark.share
@pytest.mark.parametrize("name", ALL)
def test_equal_over_the_whole_grid(client: JavaProcess, name: str) -> None:
    """1 to 20 queues, 1 to 10 clients, every index."""
    asked = cases(range(1, QUEUES + 1), range(1, CLIENTS + 1))
    theirs = client.call("allocate", strategy=name, cases=asked, rooms=list(ROOMS))
    assert len(theirs) == QUEUES * CLIENTS
    for (queues, clients), given in zip(asked, theirs, strict=True):
        ours = [[list(one) for one in ALL[name](client_id, queues, clients)] for client_id in clients]
        assert ours == given, (len(queues), len(clients))


def test_the_recorded_share_is_javas(client: JavaProcess) -> None:
    """What the tests without Java compare with (`tests/query/assignment/java.json`)."""
    for name in ALL:
        asked = cases(range(*SHARE[0]), range(*SHARE[1]))
        given = client.call("allocate", strategy=name, cases=asked, rooms=list(ROOMS))
        assert recorded()[name] == [numbers_of(one) for one in given]
