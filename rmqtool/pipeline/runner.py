"""Work handed out to tasks, one Spark job a store, so that what fails is known by name.

A task whose worker process dies is tried again by Spark. What dies every time is run once more alone and
then given up; everything else is finished.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.session import first_line, parallelism
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.store.coverage import Incomplete, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from pyspark.sql import SparkSession

    from rmqtool.pipeline.parts import LogPart

    Row = dict[str, Any]

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")
Made = TypeVar("Made")

_JOBS_AHEAD = 2
"""Spark jobs for each task that can run at once, so that none waits for a slow one"""


@dataclass(frozen=True)
class Lost:
    """An item without a result."""

    error: str


@dataclass(frozen=True)
class Task(Generic[Item, Result]):
    """What runs where the data is: a function and the errors that are not defects."""

    work: Callable[[Item], Result]

    def __call__(self, item: Item) -> Result | Lost:
        """The result, or why there is none."""
        try:
            return self.work(item)
        except RmqtoolError as error:
            return Lost(str(error))


def run_each(
    session: SparkSession,
    groups: Mapping[Key, Sequence[Item]],
    work: Callable[[Item], Result] | Mapping[Key, Callable[[Item], Result]],
) -> Iterator[tuple[Key, list[Result | Lost]]]:
    """The results of every group, in the order of groups and items; a group is one Spark job.

    work: for all groups, or for each its own. Results are held on the driver, for some groups at once: they
    have to be small. Raises `UsageError` where workers do not run at all.
    """
    calls = {
        key: partial(run_group, session, list(items), _work_of(work, key)) for key, items in groups.items()
    }
    return side_by_side(session, calls)


def side_by_side(
    session: SparkSession, calls: Mapping[Key, Callable[[], Made]]
) -> Iterator[tuple[Key, Made]]:
    """What calls that run Spark jobs return, in their order; some run at once, those not begun never do."""
    width = _JOBS_AHEAD * parallelism(session)
    waiting: deque[tuple[Key, Future[Made]]] = deque()
    with ThreadPoolExecutor(width) as pool:
        try:
            for key, call in calls.items():
                waiting.append((key, pool.submit(call)))
                if len(waiting) == width:
                    first, done = waiting.popleft()
                    yield first, done.result()
            while waiting:
                first, done = waiting.popleft()
                yield first, done.result()
        except BaseException:
            for _, one in waiting:
                one.cancel()
            session.sparkContext.cancelAllJobs()
            raise


def _work_of(
    work: Callable[[Item], Result] | Mapping[Key, Callable[[Item], Result]], key: Key
) -> Callable[[Item], Result]:
    return work if callable(work) else work[key]


def over_log(
    session: SparkSession,
    groups: Mapping[Key, Sequence[LogPart]],
    work: Callable[[LogPart], Result] | Mapping[Key, Callable[[LogPart], Result]],
) -> Iterator[tuple[Key, list[tuple[LogPart, Result | Lost]]]]:
    """The results of parts of logs."""
    for key, results in run_each(session, groups, work):
        yield key, list(zip(groups[key], results, strict=True))


def run_group(
    session: SparkSession, items: Sequence[Item], work: Callable[[Item], Result]
) -> list[Result | Lost]:
    """One job; when it fails, each item by itself."""
    if not items:
        return []
    task: Task[Item, Result] = Task(work)
    try:
        return _job(session, items, task)
    except spark_errors() as error:
        refuse_workers(error)
        if len(items) == 1:
            return [Lost(first_line(error))]
    results: list[Result | Lost] = []
    for one in items:
        try:
            results += _job(session, [one], task)
        except spark_errors() as error:
            results.append(Lost(first_line(error)))
    return results


def _job(session: SparkSession, items: Sequence[Item], task: Any) -> list[Result | Lost]:
    found: list[Any] = session.sparkContext.parallelize(items, len(items)).map(task).collect()
    return found


def spark_errors() -> tuple[type[Exception], ...]:
    """What a job or a statement that fails raises."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return (Py4JJavaError, PySparkException)


def lost_part(part: LogPart, lost: Lost) -> Row:
    """A part that has no result, as a row of `not_covered`."""
    start, end = part.share
    row = unreadable(part.segment.file.display_path, lost.error, start, end - start)
    return row | {"physical_offset": part.segment.base + start}


def lost_store(lost: Lost) -> Row:
    """A store about which nothing is known, as a row of `not_covered`."""
    return {"path": ".", "reason": Incomplete.UNREADABLE.value, "error": lost.error}
