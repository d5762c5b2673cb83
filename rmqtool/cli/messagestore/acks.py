"""Answers to puts as rows, and the summary and exit code that follow from them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, worst
from rmqtool.messagestore.messages import PutStatus
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from rmqtool.messagestore.messages import Ack

SCHEMA = "rmqtool.store-put/1"
COLUMNS = [
    Column("status"),
    Column("topic", shrinks=True),
    Column("queue_id", "queue", right=True),
    Column("queue_offset", "offset", right=True),
    Column("physical_offset", "physical", right=True, gives=2),
    Column("uniq_key", shrinks=True),
    Column("line", right=True, gives=1),
    Column("message", below=True),
]
HALF_COLUMNS = [Column("transaction_id") if one.key == "uniq_key" else one for one in COLUMNS]
"""the id is what a commit or a rollback takes"""
CSV_COLUMNS = (
    "type", "status", "topic", "queue_id", "queue_offset", "physical_offset", "offset_msg_id", "uniq_key",
    "line", "message",
)  # fmt: skip
_STORED = frozenset({PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT})
_OF_MESSAGE = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


class Acks:
    """Counts answers. bodies: bytes of bodies that were stored. halves: rows have a `transaction_id`."""

    def __init__(self, *, halves: bool = False) -> None:
        self._halves = halves
        self._counts: Counter[PutStatus] = Counter()
        self.bodies = 0

    def row(self, ack: Ack, line: int | None, body: int) -> dict[str, Any]:
        """The row of an answer. line: of the input, None where there was none. body: its length, bytes."""
        self._counts[ack.status] += 1
        stored = ack.status in _STORED
        self.bodies += body * stored
        row: dict[str, Any] = {
            "type": "ack",
            "status": ack.status.value,
            "topic": ack.topic,
            "queue_id": ack.queue_id if ack.queue_id >= 0 else None,
            "queue_offset": ack.queue_offset if stored else None,
            "physical_offset": ack.physical_offset if stored else None,
            "offset_msg_id": ack.offset_msg_id,
            "uniq_key": ack.uniq_key,
        }
        if self._halves:
            row["transaction_id"] = ack.uniq_key if stored else None
        return row if ack.status is PutStatus.PUT_OK else row | _why(line, ack.message)

    def bad_line(self, line: int, why: str) -> dict[str, Any]:
        """The row of a line that gives no message."""
        self._counts[PutStatus.MESSAGE_ILLEGAL] += 1
        nothing = dict.fromkeys(CSV_COLUMNS[2:8])
        return {"type": "ack", "status": PutStatus.MESSAGE_ILLEGAL.value, **nothing, **_why(line, why)}

    def summary(self) -> dict[str, Any]:
        """The counts, as in a closing summary."""
        stored = sum(count for status, count in self._counts.items() if status in _STORED)
        return {
            "messages": stored,
            "bytes": self.bodies,
            "refused": self._counts.total() - stored,
            "by_status": {status.value: count for status, count in sorted(self._counts.items())},
        }

    def exit_code(self) -> ExitCode:
        """1 for messages that were refused or may not be on the medium, 4 where the system did not write."""
        codes = [ExitCode.OK]
        for status in self._counts:
            if status is not PutStatus.PUT_OK:
                of_message = status in _OF_MESSAGE or status is PutStatus.FLUSH_DISK_TIMEOUT
                codes.append(ExitCode.DAMAGE if of_message else ExitCode.INTERNAL)
        return worst(codes)


def _why(line: int | None, message: str) -> dict[str, Any]:
    return ({} if line is None else {"line": line}) | {"message": message}
