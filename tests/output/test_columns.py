"""Arrow batches as lists."""

from __future__ import annotations

import pyarrow as pa

from rmqtool.output.columns import batch_columns


def test_maps_are_dicts_and_binary_is_hex() -> None:
    batch = pa.record_batch(
        {
            "topic": pa.array(["T", None]),
            "keys": pa.array([["a"], None], pa.list_(pa.string())),
            "properties": pa.array([[("a", "1"), ("b", "2")], None], pa.map_(pa.string(), pa.string())),
            "properties_raw": pa.array([b"\x01\xff", None], pa.binary()),
            "body": pa.array([b"never", b"read"], pa.large_binary()),
        }
    )
    names, columns = batch_columns(batch, leave_out={"body"})
    assert dict(zip(names, columns, strict=True)) == {
        "topic": ["T", None],
        "keys": [["a"], None],
        "properties": [{"a": "1", "b": "2"}, None],
        "properties_raw_hex": ["01ff", None],
    }
