"""The result of a statement as one Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import RawIOBase


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: RawIOBase) -> Iterator[int]:
    """Writes `batches` into `out`, which stays open; the rows of each once it is written.

    Raises `UsageError` for a column for which Parquet has no type, such as an interval.
    """
    try:
        with pq.ParquetWriter(out, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                yield batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise UsageError(f"Parquet cannot hold this result: {error}") from error
