"""The state of a store for other processes than the writer: its counters, or what the files tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.broker.log_view import LogView
from rmqtool.messagestore.statistics import disk_ratio, published
from rmqtool.query.dispatch_position import dispatch_position
from rmqtool.scan.log_end import log_span
from rmqtool.store.lock import probe

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

_PUT = ("messages", "per_second")
_GET = ("per_second", "hit", "miss", "messages", "bytes")
_LATENCY = ("p50", "p99", "max")


def status_of(store: Store) -> dict[str, Any]:
    """The document of `rmqtool store status`: null for what only a writer knows. Takes no lock.

    writer: whether a process holds the store; pid: which, as far as the system tells.
    """
    state, reported = probe(store.root), published(str(store.root))
    behind = _behind(store) if reported is None else reported.get("dispatch_behind_bytes")
    put = _part(reported, "put")
    return {
        "writer": bool(state.held),
        "pid": state.pid,
        "put": {
            **{name: _number(put.get(name)) for name in _PUT},
            "latency_ms": {name: _number(_part(put, "latency_ms").get(name)) for name in _LATENCY},
        },
        "get": {name: _number(_part(reported, "get").get(name)) for name in _GET},
        "dispatch_behind_bytes": _number(behind),
        "flush_behind_bytes": None if reported is None else _number(reported.get("flush_behind_bytes")),
        "disk_ratio": disk_ratio(str(store.root)),
    }


def _behind(store: Store) -> int | None:
    """Bytes of the log behind the last record that a queue knows; None where a directory cannot be listed."""
    if any(one.error is not None for one in store.directories):
        return None
    if not len(store.segments):
        return 0
    with LogView(store.segments) as log:
        return max(log_span(store)[1] - dispatch_position(store, log), 0)


def _part(reported: dict[str, Any] | None, name: str) -> dict[str, Any]:
    found = None if reported is None else reported.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> int | float | None:
    return value if type(value) in {int, float} else None
