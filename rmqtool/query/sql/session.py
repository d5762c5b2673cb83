"""A database in memory over one store. It reaches no file but by the tables, and writes none."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ABANDONED, MissingExtraError, UsageError
from rmqtool.query.sql.allowed import refuse_all_but_queries
from rmqtool.query.sql.dataset import Lacking, small_table
from rmqtool.store.trust import refuse_foreign_temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self, TypeVar

    import pyarrow as pa

    from rmqtool.query.sql.messages import Hiding
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    T = TypeVar("T")

_BATCH_ROWS = 8192
_PATIENCE = 0.5
"""seconds until a call must have noticed that it was interrupted: DuckDB looks between steps only, and one
call of a function may take minutes"""


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("sql", "sql") from error
    return duckdb


class SqlSession:
    """A context manager; `run` may be called many times. Raises `MissingExtraError` without DuckDB.

    reading: how the store is read. hiding: what takes out of records what must not be seen; where hashes
    would tell of it they are null.
    """

    def __init__(
        self, store: Store, reading: ReadOptions, hiding: Hiding | None = None, *, hashes: bool = True
    ) -> None:
        from rmqtool.query.sql import derived
        from rmqtool.query.sql.messages import MessagesTable

        self._duckdb = _duckdb()
        refuse_foreign_temporary()
        self.lacking = Lacking()
        self.reading = reading
        self.messages = MessagesTable(store.segments, reading, self.lacking, hiding)
        self._tables: dict[str, Any] = {
            "messages": self.messages.dataset(),
            "consumequeue": derived.consumequeue(store, self.lacking, hashes=hashes),
            "index_items": derived.index_items(store, self.lacking, hashes=hashes),
        }
        for name, made in (("consumer_offsets", derived.consumer_offsets), ("topics", derived.topics)):
            self._tables[name] = small_table(name, made(store), self.lacking)
        self._spill = tempfile.TemporaryDirectory(prefix="rmqtool-sql-")
        config = {
            "python_enable_replacements": False,
            "temp_directory": self._spill.name,
            "threads": reading.jobs,
            "allow_persistent_secrets": False,  # they lie in the home directory
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._database = self._duckdb.connect(":memory:", config=config)
        for name, table in self._tables.items():
            self._database.register(name, table)
        self._database.execute("SET TimeZone = 'UTC'")
        # Not in `config`: DuckDB then lets ":memory:", the name of the database, be reached as a file.
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")
        self._thread = ThreadPoolExecutor(1, "sql", lambda: self._threads.append(current_thread()))
        self._threads: list[Thread] = []
        self._abandoned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=not self._abandoned)
        if not self._abandoned:
            self._database.close()
        del self._database
        with suppress(OSError):  # an abandoned call may still write
            self._spill.cleanup()

    def run(self, sql: str) -> pa.RecordBatchReader:
        """The result of one query, made while `batches` reads it; other statements are a `UsageError`."""
        with self._errors():
            return self._interruptible(lambda: self._reader(sql))

    def _reader(self, sql: str) -> pa.RecordBatchReader:
        refuse_all_but_queries(self._duckdb, self._database, sql, self._tables)
        found = self._database.sql(sql)
        if found is None:
            raise UsageError("only queries are run: the statement is a command")
        made = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
        reader: pa.RecordBatchReader = made(_BATCH_ROWS)
        return reader

    def batches(self, result: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Batches of a result."""
        while True:
            with self._errors():
                batch = self._interruptible(lambda: next(result, None))
            if batch is None:
                return
            yield batch

    def _interruptible(self, call: Callable[[], T]) -> T:
        """The result of a call into the database, which would answer no signal in the main thread."""
        future = self._thread.submit(call)
        try:
            return future.result()
        except KeyboardInterrupt:
            self.lacking.interrupted.set()
            self._database.interrupt()
            if wait([future], _PATIENCE).not_done:
                self._abandoned = True
                for thread in self._threads:
                    thread.name = ABANDONED
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the database complains about is one line of `UsageError`; an error of reading is itself."""
        import pyarrow as pa

        try:
            yield
        except self._duckdb.InterruptException as error:
            raise KeyboardInterrupt from error
        except (self._duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            if self.lacking.error is not None:
                raise self.lacking.error from error
            raise UsageError(_one_line(str(error))) from error


def _one_line(message: str) -> str:
    """The complaint without the copy of the statement that points at a place in it."""
    reported = message.split("\n\nLINE ", maxsplit=1)[0]
    return " ".join(reported.split())
