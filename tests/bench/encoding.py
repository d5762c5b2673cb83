"""Records from columns, against one at a time by `formats.commitlog.encode_message`."""

from __future__ import annotations

import numpy as np

from formats.commitlog import encode_message
from rmqtool.broker.encoder import MessageColumns
from rmqtool.scan.engine import choose_kernels
from tests.bench.measure import Figure, in_turn
from tests.broker.engine import columns, message

MESSAGES = 200_000
SINGLE = 5_000
TARGET = 20.0


def against_single_records(body_bytes: int) -> Figure:
    """How many times as many records a second."""
    unset = {"store_timestamp": 1, "physical_offset": 0, "queue_offset": 0}
    one = (
        message("TopicTest", body=bytes(body_bytes), properties=b"KEYS\x01key-1\x02TAGS\x01TagA\x02") | unset
    )
    made = columns([one])
    many = MessageColumns(
        np.repeat(made.rows, MESSAGES, axis=0), np.repeat(made.hosts, MESSAGES, axis=0), *([made.bodies] * 4)
    )
    sizes = many.sizes()
    places, kernels = np.cumsum(sizes) - sizes, choose_kernels()
    out = np.zeros(int(sizes.sum()), np.uint8)

    def single() -> None:
        for _ in range(SINGLE):
            encode_message(**one)

    taken = in_turn({"many": lambda: many.write(places, out, kernels), "single": single})
    rates = MESSAGES / taken["many"].best, SINGLE / taken["single"].best
    assert out[: sizes[0]].tobytes() == encode_message(**one)
    note = f"{rates[0] / 1e6:.1f} M/s, {rates[1] / 1e3:.0f} k/s"
    return Figure(f"encoding, bodies of {body_bytes} B", "one by one", rates[0] / rates[1], TARGET, note=note)
