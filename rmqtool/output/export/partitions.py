"""Parts of a batch by topic and day, and the names of their directories."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def partitions(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Parts of a batch by partition, each with its directory."""
    columns = [_PARTITION_VALUES[key](batch) for key in keys]
    coded = [pc.dictionary_encode(column, null_encoding="encode") for column in columns]
    codes = np.stack([one.indices.to_numpy() for one in coded])
    distinct, places = np.unique(codes, axis=1, return_inverse=True)
    names = [[_escaped(value) for value in one.dictionary.to_pylist()] for one in coded]
    for number in range(distinct.shape[1]):
        directory = "/".join(
            f"{key}={values[code]}"
            for key, values, code in zip(keys, names, distinct[:, number], strict=True)
        )
        if distinct.shape[1] == 1:
            yield directory, batch
        else:
            yield directory, batch.take(pa.array(np.flatnonzero(places.reshape(-1) == number)))


def _day(batch: pa.RecordBatch) -> pa.Array:
    return pc.strftime(batch["store_time"], format="%Y-%m-%d")


_PARTITION_VALUES: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "topic": lambda batch: batch["topic"],
    "day": _day,
}


def _escaped(value: str | None) -> str:
    """A value as part of a path, as Hive and its readers have it."""
    if value is None or not value:
        return _NO_VALUE
    quoted = quote(value, safe=" ")
    return quoted.replace(".", "%2E") if not value.strip(".") else quoted
