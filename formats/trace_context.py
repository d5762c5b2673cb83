"""Records of the trace topic, by which clients report (`TraceDataEncoder#decoderFromTraceDataString`)."""

from __future__ import annotations

from formats.java import java_parse_int

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
_FIELD, _CONTEXT = "\x01", "\x02"
_NUMBERS = frozenset({"timestamp", "cost_ms", "body_length", "retry_times"})
_PUB = (
    "timestamp", "region", "group", "topic", "msg_id", "tags", "keys", "store_host", "body_length", "cost_ms",
    "msg_type", "offset_msg_id", "success", "client_host",
)  # fmt: skip
_FIELDS = {
    "Pub": _PUB,
    "Recall": ("timestamp", "region", "group", "topic", "msg_id", "success"),
    "SubBefore": (
        "timestamp", "region", "group", "request_id", "msg_id", "retry_times", "keys", "client_host",
    ),
    "SubAfter": ("request_id", "msg_id", "cost_ms", "success", "keys", "context_code", "timestamp", "group"),
    "EndTransaction": (
        "timestamp", "region", "group", "topic", "msg_id", "tags", "keys", "store_host", "msg_type",
        "transaction_id", "state", "from_check",
    ),
}  # fmt: skip
"""fields of a context behind its type, in order; later releases have more of them than earlier ones"""


def trace_contexts(body: bytes) -> list[dict[str, str | int]]:
    """The contexts in a body, with `trace_type`; what is not a context is left out, as are empty fields."""
    found = []
    for text in body.decode("utf-8", "replace").split(_CONTEXT):
        kind, *values = text.split(_FIELD)
        names = _FIELDS.get(kind)
        if names is None:
            continue
        one: dict[str, str | int] = {"trace_type": kind}
        for name, value in zip(names, values, strict=False):
            number = java_parse_int(value, 64) if name in _NUMBERS else None
            if value and value != "null":
                one[name] = value if number is None else number
        found.append(one)
    return found
