"""The real Java store for tests, or a visible skip with the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.jars import UnavailableError, jars
from tests.interop.javastore import RELEASES, JavaStore
from tests.pipeline.conftest import spark

__all__ = ["spark"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REASONS = pytest.StashKey[set[str]]()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Each release in turn, with its jars at hand; skips with the reason when they cannot be had."""
    return require(request.config, request.param)


def require(config: pytest.Config, release: str, artifact: str = "store") -> str:
    """The release, with its jars at hand; skips with the reason when they cannot be had."""
    try:
        jars(release, artifact)
    except UnavailableError as missing:
        reasons: set[str] = config.stash.setdefault(REASONS, set())
        reasons.add(str(missing))
        pytest.skip(f"no real RocketMQ {release} here: {missing}")
    return release


@pytest.fixture
def java_store(release: str) -> Iterator[Callable[..., JavaStore]]:
    """(root, **settings) → a running Java store of this release, ended with the test if it still runs."""
    opened: list[JavaStore] = []

    def open_store(root: object, **settings: object) -> JavaStore:
        opened.append(JavaStore(release, root, **settings))  # type: ignore[arg-type]
        return opened[-1]

    yield open_store
    for store in opened:
        store.kill()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line at the end when nothing was compared with a real RocketMQ."""
    reasons: set[str] = config.stash.setdefault(REASONS, set())
    for reason in sorted(reasons):
        terminalreporter.write_line(f"interop: not compared with a real RocketMQ: {reason}", yellow=True)
