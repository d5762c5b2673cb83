"""Which tests a run takes in, what is random in them, and runs that go on where they stopped.

A plain run is the same every time: its property tests have fixed seeds. `--explore` and `-m full` give them
a random one; it is printed, and `--hypothesis-seed` repeats it. What they find becomes an `@example`.
"""

from __future__ import annotations

import gc
import json
import random
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

EXAMPLES = {"fixed": 15, "random": 100}
"""of a property test: those of the usual run are the same every time, so many of them find no more"""
for _name, _examples in EXAMPLES.items():
    # too_slow is about the machine: nothing in a run may depend on what else it has to do
    settings.register_profile(
        _name,
        derandomize=_name == "fixed",
        max_examples=_examples,
        database=None,
        print_blob=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

ON_SPARK = ("tests/pipeline/", "tests/interop/test_stream_interop.py")
"""tests that share a session of Spark, which takes longer to start than most of them"""
WITH_JAVA = ("tests/interop/",)
"""tests that share the JVMs of two releases, and mostly wait for them"""
GOLDEN = re.compile(r"\b[bv]\d{3}-([a-z0-9-]+)")
FEW = 1
SHARE = 5
"""one of so many cases of a test with the mark `share` runs always"""
LONG = (
    "tests/check/test_dying.py",
    "tests/cli/test_interrupt.py",
    "tests/cli/test_interrupted_queries.py",
    "tests/project/test_docs.py::test_shown_output",
    "tests/repair/test_in_place.py::test_a_kill",
    "tests/scan/test_startup.py",
)
"""tests that start processes, or read much: `--few` leaves them out too"""

HERE = Path(__file__).parent
LONGEST = ("pipeline", "interop", "laws", "repair", "cli")
"""rooms whose files take longest; they come first, so that no process is alone with them at the end"""

DONE = pytest.StashKey[set[str]]()


def sampled(
    cases: Iterable[Any], kind: Callable[[Any], Hashable], each: int = 1, *, unpack: bool = False
) -> list[Any]:
    """All cases as parameters: `each` of every kind run always, the others with `-m full` only.

    Of the n-th kind it is the n-th case, so that releases, modes and sizes take turns; behind the last comes
    the first again. With `unpack`, a case is the values of several parameters.
    """
    listed = list(cases)
    kinds: dict[Hashable, list[int]] = {}
    for place, case in enumerate(listed):
        kinds.setdefault(kind(case), []).append(place)
    always: set[int] = set()
    for number, places in enumerate(kinds.values()):
        some = min(each, len(places))
        always |= {places[(number + one * len(places) // some) % len(places)] for one in range(some)}
    return [
        case if place in always else pytest.param(*(case if unpack else (case,)), marks=pytest.mark.full)
        for place, case in enumerate(listed)
    ]


def beyond_a_share(names: list[str]) -> set[str]:
    """Of tests with the mark `share`, the cases that run with `-m full` only.

    Which ones their names decide, so that no parameter has the same value in all that stay.
    """
    cases: dict[str, list[str]] = defaultdict(list)
    for name in names:
        cases[name.partition("[")[0]].append(name)
    return {
        name
        for of_one in cases.values()
        for name in sorted(of_one, key=lambda one: crc32(one.encode()))[-(-len(of_one) // SHARE) :]
    }


def kind_of(golden: str) -> str:
    """What a golden was made for: its name without the release."""
    return golden.partition("-")[2]


def of_each_kind(names: Iterable[str]) -> list[Any]:
    """Goldens as parameters: one of each kind runs always, by turns of an older and a newer release."""
    return sampled(names, kind=kind_of)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rmqtool")
    group.addoption("--explore", action="store_true", help="random property tests; the seed is printed")
    group.addoption("--few", action="store_true", help="a few cases of each test, one golden of each kind")
    group.addoption("--done", metavar="FILE", help="leave out what FILE lists as passed, and add what passes")


def explores(config: pytest.Config) -> bool:
    """Are property tests random in this run?"""
    chosen = config.getoption("markexpr", "") or ""
    return bool(config.getoption("explore") or re.search(r"(?<!not )\bfull\b", chosen))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before Hypothesis reads its options, and before test modules are loaded."""
    settings.load_profile("random" if explores(config) else "fixed")
    if explores(config) and config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(random.randrange(1 << 32))
    worker = getattr(config, "workerinput", None)
    config.stash[DONE] = set(worker["done"]) if worker else passed_in(config.getoption("done"))
    if worker is None:
        config.pluginmanager.register(Failures(config))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """A worker begins with what was done at the start of the run, also one that replaces another."""
    node.workerinput["done"] = sorted(node.config.stash[DONE])


def passed_in(done: str | None) -> set[str]:
    """Ids of the tests that the file lists as passed; none when there is no such file."""
    if done is None or not Path(done).exists():
        return set()
    return {one["id"] for one in results_in(Path(done)) if one["result"] == "passed"}


def results_in(done: Path) -> list[dict[str, Any]]:
    """One row a test, the last that was written of each: id, result, seconds, date."""
    rows = (json.loads(line) for line in done.read_text().splitlines() if line.endswith("}"))
    return list({row["id"]: row for row in rows}.values())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest chooses by marks, as some are given here."""
    # of the cases that run always by other rules: a share of all of them might leave none
    shared = [item for item in items if item.get_closest_marker("share")]
    beyond = beyond_a_share([item.nodeid for item in shared if not item.get_closest_marker("full")])
    for item in items:
        if item.nodeid in beyond:
            item.add_marker(pytest.mark.full)
    done = config.stash[DONE]
    left_out = {item.nodeid for item in items if item.nodeid in done}
    if config.getoption("few"):
        left_out |= beyond_a_few([item.nodeid for item in items])
    items.sort(key=lambda item: _turn(item.path.parts[len(HERE.parts)]))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was collected stays to the end: the garbage collector need not go over it with every test."""
    gc.collect()
    gc.freeze()


def _turn(room: str) -> int:
    return LONGEST.index(room) if room in LONGEST else len(LONGEST)


def beyond_a_few(names: list[str]) -> set[str]:
    """What `--few` leaves out: of each test all but FEW cases and one golden a kind; what takes long."""
    seen: dict[tuple[str, str], int] = {}
    left_out = set()
    for name in names:
        test, _, case = name.partition("[")
        golden = GOLDEN.search(case)
        of_kind = (test, golden[1] if golden else "")
        seen[of_kind] = number = seen.get(of_kind, 0) + 1
        if number > (1 if golden else FEW) or name.startswith(ON_SPARK + LONG):
            left_out.add(name)
    return left_out


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """`--dist loadfile`, in the order of `LONGEST`; all tests on Spark go to one process, those with real
    stores to another."""
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    from xdist.scheduler import LoadFileScheduling

    class OneSession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(ON_SPARK):
                return "spark"
            return "java" if nodeid.startswith(WITH_JAVA) else super()._split_scope(nodeid)

    return OneSession(config, log)


class Ledger:
    """Adds a line a test to the file of `--done`; in the process that controls the workers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._result: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0) + report.duration
        if report.outcome != "passed":
            self._result[name] = report.outcome
        if report.when == "teardown":
            row = {
                "id": name,
                "result": self._result.pop(name, "passed"),
                "seconds": round(self._seconds.pop(name), 2),
                "date": time.strftime("%Y-%m-%d"),
            }
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    done = session.config.getoption("done")
    if done is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Ledger(Path(done)))


class Failures:
    """Names a test as soon as it fails: the end of a run may be minutes away."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One line, on the terminal of the run itself."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\nFAILED {report.nodeid} ({report.when})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("hypothesis_seed")
    terminalreporter.write_line(
        f"property tests: seed {seed}; --hypothesis-seed={seed} repeats them"
        if explores(config)
        else "property tests: fixed seeds; --explore has random ones"
    )
