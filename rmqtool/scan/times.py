"""Columns of time for readers that know timestamps: Parquet, SQL, Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TIMES = {"born_time": "born_timestamp", "store_time": "store_timestamp"}
"""columns of time, and the milliseconds that they are made of"""

_MICROS = 1000
LARGEST_MILLIS = (1 << 63) // _MICROS - 1


def as_time(millis: pa.Array) -> pa.Array:
    """Epoch milliseconds as timestamps; null where they are beyond what a timestamp holds."""
    values = millis.to_numpy(zero_copy_only=False)
    outside = (values > LARGEST_MILLIS) | (values < -LARGEST_MILLIS)
    known = np.where(outside, 0, values) * _MICROS
    return pa.array(known, pa.int64(), mask=outside if outside.any() else None).view(TIME)
