"""Inspects, repairs and queries Apache RocketMQ store directories, one or many, without a broker.

From Python, the records of a store as Arrow:

    import rmqtool

    store = rmqtool.open_store("/data/store")
    for batch in rmqtool.scan(store, columns=["topic", "queue_id", "store_timestamp"]):
        ...  # pyarrow.RecordBatch

These functions read and never write into a store; it is repaired from the command line. `MessageStore` is the
store itself, to put messages and get them (docs/message-store.md). Names are loaded when they are used, so
that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmqtool.api import open_store, scan, scan_events, table_schema
    from rmqtool.messagestore.messages import Message
    from rmqtool.messagestore.store import MessageStore

__all__ = ["Message", "MessageStore", "open_store", "scan", "scan_events", "table_schema"]

_WHERE = {
    "Message": "rmqtool.messagestore.messages",
    "MessageStore": "rmqtool.messagestore.store",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_WHERE.get(name, "rmqtool.api")), name)
    raise AttributeError(f"module 'rmqtool' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
