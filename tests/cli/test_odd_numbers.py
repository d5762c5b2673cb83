"""Properties that brokers parse as numbers, with what Java takes and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from fixtures.stores import HandmadeStore
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = (
    "7" * 5000,
    "-" + "9" * 5000,
    "\u0663",
    "\uff15",
    "+5",
    "-0",
    " 5",
    "0x10",
    "1e3",
    "5L",
    str(1 << 63),
    "+-5",
)
PROPERTIES = (
    "DELAY",
    "INNER_NUM",
    "INNER_BASE",
    "INNER_MULTI_QUEUE_OFFSET",
    "TIMER_OUT_MS",
    "REAL_QID",
    "__CRC32#",
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record a property and a number; those of delays and batches where they count."""
    store = HandmadeStore(HandmadeLog(segment_size=16384))
    for name in PROPERTIES:
        topic = {"DELAY": "SCHEDULE_TOPIC_XXXX", "TIMER_OUT_MS": "rmq_sys_wheel_timer"}.get(name, "Orders")
        beside = {"INNER_NUM": "1", "INNER_BASE": "0"} if name.startswith("INNER_") else {}
        beside |= {"INNER_MULTI_DISPATCH": "%LMQ%a"} if "MULTI" in name else {}
        for number in NUMBERS:
            store.put(topic, b"body", properties={**beside, name: number})
    return store.write(tmp_path_factory.mktemp("odd") / "store").root


@pytest.mark.parametrize(
    "command",
    ["verify --deep", "doctor --full", "recover", "rebuild --what cq", "query-offset", "stats", "dump"],
)
def test_no_number_ends_a_command(odd: Path, command: str) -> None:
    name, *options = command.split()
    options += ["Orders", "0", "3"] if name == "query-offset" else []
    reported = rmq(name, odd, *options)
    assert reported.exit_code in (0, 1, 3), reported.stderr
    assert "internal error" not in reported.stderr
