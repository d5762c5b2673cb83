"""Rows of a table of Spark on the driver, some at a time, as Arrow batches for writing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from rmqtool.pipeline.types import arrow_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_AT_ONCE = 1024


def local_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """All rows in their order; the driver holds one partition of the result at a time."""
    schema = arrow_of(frame.schema)
    rows = frame.toLocalIterator()
    while some := list(islice(rows, _AT_ONCE)):
        columns = [
            pa.array([_plain(row[place]) for row in some], field.type) for place, field in enumerate(schema)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value
