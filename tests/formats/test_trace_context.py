"""Bodies of the trace topic, as clients of several releases wrote them."""

from __future__ import annotations

import pytest

from formats.trace_context import trace_contexts

PUB = "Pub|1795253057224|Region|PG|T|ID1|TagT|k|127.0.0.1:30911|8|14|0|OID|true\x02".replace("|", "\x01")
BEFORE = "SubBefore\x011\x01null\x01CG\x01REQ\x01ID1\x012\x01k\x02"
AFTER = "SubAfter\x01REQ\x01ID1\x017\x01true\x01k\x010\x02"


def test_every_context_of_a_body() -> None:
    pub, before, after = trace_contexts((PUB + BEFORE + AFTER).encode())
    assert (pub["trace_type"], pub["timestamp"], pub["topic"], pub["cost_ms"]) == (
        "Pub",
        1795253057224,
        "T",
        14,
    )
    assert (before["group"], before["retry_times"], "region" in before) == ("CG", 2, False)
    assert (after["msg_id"], after["success"], "timestamp" in after) == ("ID1", "true", False)


@pytest.mark.parametrize(
    "body", [b"", b"\x02", b"\xff\xfe\x01\x02", b"Nothing\x01x\x02", b"Pub", b"Pub\x01" * 9]
)
def test_what_is_none_is_left_out(body: bytes) -> None:
    assert all(one["trace_type"] == "Pub" for one in trace_contexts(body))
