"""The real Java store for tests, or a visible skip with the reason why there is none."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from tests.interop.jars import UnavailableError, jars
from tests.interop.javastore import RELEASES, JavaStore
from tests.pipeline.conftest import spark

__all__ = ["spark"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.javastore import JavaProcess

HERE = Path(__file__).parent
REASONS = pytest.StashKey[set[str]]()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Each release in turn, with its jars at hand; skips with the reason when they cannot be had."""
    return require(request.config, request.param)


ON_BOTH = ("test_java_utf8.py",)
"""what each release answers by itself"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The cases of a test are by turns on one release and the other; all of them on both with `-m full`."""
    tests: dict[str, dict[str, dict[str, pytest.Item]]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        release = callspec.params.get("release") if callspec else None
        if release in RELEASES and item.path.parent == HERE and item.path.name not in ON_BOTH:
            test, _, case = item.nodeid.partition("[")
            tests.setdefault(test, {}).setdefault(case.replace(release, ""), {})[release] = item
    for test, cases in tests.items():
        for number, on in enumerate(cases.values(), crc32(test.encode())):
            if len(on) == len(RELEASES):
                on[RELEASES[number % len(RELEASES)]].add_marker(pytest.mark.full)


def require(config: pytest.Config, release: str, artifact: str = "store") -> str:
    """The release, with its jars at hand; skips with the reason when they cannot be had."""
    try:
        jars(release, artifact)
    except UnavailableError as missing:
        reasons: set[str] = config.stash.setdefault(REASONS, set())
        reasons.add(str(missing))
        pytest.skip(f"no real RocketMQ {release} here: {missing}")
    return release


@pytest.fixture(scope="session")
def idle() -> Iterator[dict[str, list[JavaProcess]]]:
    """Release → processes whose last store was shut down: to start Java takes longer than most tests."""
    processes: dict[str, list[JavaProcess]] = defaultdict(list)
    yield processes
    for process in itertools.chain.from_iterable(processes.values()):
        process.kill()


@pytest.fixture
def java_store(
    release: str, idle: dict[str, list[JavaProcess]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., JavaStore]]:
    """(root, **settings) → a running Java store of this release, killed with the test if it still runs."""
    opened: list[JavaStore] = []
    home = tmp_path_factory.getbasetemp()

    def open_store(root: Path, **settings: Any) -> JavaStore:
        opened.append(JavaStore(release, root, idle=idle[release], home=home, **settings))
        return opened[-1]

    yield open_store
    for store in opened:
        if not store.ended:
            store.kill()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line at the end when nothing was compared with a real RocketMQ."""
    reasons: set[str] = config.stash.setdefault(REASONS, set())
    for reason in sorted(reasons):
        terminalreporter.write_line(f"interop: not compared with a real RocketMQ: {reason}", yellow=True)
