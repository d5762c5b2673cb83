"""Workers of Spark that cannot run at all: the fault of an environment, and not of a store."""

from __future__ import annotations

import re

from rmqtool.errors import UsageError

_TELLS = (
    (re.compile(r'Cannot run program "([^"]+)": (?:error=\d+, )?([^\n]+)'), "{0}: {1}"),
    (re.compile(r"No module named '?([\w.]+)"), "its Python has no module {0}"),
    (re.compile(r"different version: (\S+) than that in driver: ([\d.]*\d)"),
     "its Python is {0}, that of the driver {1}"),
    (re.compile(r"port number from \S+'s stdout"), "it does not answer as Python does"),
)  # fmt: skip


def refuse_workers(error: BaseException) -> None:
    """Raises `UsageError` where an error of Spark says that no task can run, wherever it is tried."""
    text = str(error)
    for pattern, tells in _TELLS:
        found = pattern.search(text)
        if found is not None:
            raise UsageError(
                "Spark's workers do not run, they need the Python and the packages of this program"
                f" (PYSPARK_PYTHON, spark.pyspark.python): {tells.format(*found.groups())}"
            ) from error
