"""Offline forensics for Apache RocketMQ store directories.

    import rmqtool

    store = rmqtool.open_store("/data/store")
    for batch in rmqtool.scan(store, columns=["topic", "queue_id", "store_timestamp"]):
        ...  # pyarrow.RecordBatch

Everything here reads; nothing is ever written into a store. Names are loaded when they are used, so that
importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmqtool.api import open_store, scan, scan_events, table_schema

__all__ = ["open_store", "scan", "scan_events", "table_schema"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from rmqtool import api

        return getattr(api, name)
    raise AttributeError(f"module 'rmqtool' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
