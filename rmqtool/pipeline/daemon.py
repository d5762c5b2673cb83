"""The process that Python workers of Spark are forked from: `spark.python.daemon.module` of our sessions.

Spark's own loads next to nothing before it forks, so each worker, also each that takes the place of a dead
one, imports Spark's code, Arrow and the jobs again. This one has them ready. It loads only what starts no
thread, since a fork copies none: not the compiled kernels, which a worker loads when its data are worth it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from pathlib import Path

_JOBS = ("export", "keys.query", "rebuild_tasks", "source", "stats", "verify")
_READY = ("pyspark.worker", "pyspark.sql.pandas.serializers", "pyarrow")


def prefer_installed() -> None:
    """Takes Spark's archives of Python code from the search path where the same code lies unpacked.

    Nothing keeps bytecode for archives, so every process would compile what it imports from there.
    """
    kept = list(sys.path)
    sys.path[:] = [one for one in kept if not _archived_twin(Path(one), kept)]
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "py4j")):
        sys.path[:] = kept


def _archived_twin(entry: Path, path: list[str]) -> bool:
    """Whether this is an archive within an installed `pyspark`: `pyspark/python/lib/*.zip`."""
    if entry.suffix != ".zip" or entry.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    package = entry.parents[2]
    return str(package.parent) in path and (package / "__init__.py").is_file()


def load() -> None:
    """Imports what workers need; `gc.freeze` spares them looking through all of it after each task."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # Arrow's only thread by then
    for name in (*_READY, *(f"rmqtool.pipeline.{job}" for job in _JOBS)):
        importlib.import_module(name)
    gc.freeze()


def main() -> None:
    """Spark's own daemon from here on."""
    prefer_installed()
    load()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
