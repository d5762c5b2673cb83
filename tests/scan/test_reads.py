"""How much of a copied log is read where it has many gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.commitlog import encode_message
from rmqtool.scan.events import Gap
from rmqtool.scan.fields import OFF_MAGIC
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import open_source
from rmqtool.store.bytes import PreadSource

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HOST = b"\x7f\0\0\1", 1


def test_what_lies_behind_a_gap_is_not_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How old records behind it are is asked of the first few."""
    data = bytearray()
    for number in range(8000):
        one = bytearray(
            encode_message(
                topic="T",
                body=b"x" * 60,
                properties=b"",
                queue_id=0,
                flag=0,
                queue_offset=number,
                physical_offset=len(data),
                sys_flag=0,
                born_timestamp=number,
                born_host=HOST,
                store_timestamp=1_700_000_000_000 + number,
                store_host=HOST,
                reconsume_times=0,
                prepared_transaction_offset=0,
            )
        )
        one[OFF_MAGIC] ^= number % 40 == 20
        data += one
    path = tmp_path / f"{0:020d}"
    path.write_bytes(data + bytes(1 << 20))
    usual = PreadSource.window
    asked: list[int] = []

    def counted(self: PreadSource, offset: int, length: int) -> Any:
        asked.append(min(length, self.size - offset))
        return usual(self, offset, length)

    monkeypatch.setattr(PreadSource, "window", counted)
    with open_source(path, "pread") as source:
        gaps = sum(isinstance(one, Gap) for one in SegmentScan(source, 0))
    assert gaps == 200
    assert sum(asked) < 20 * path.stat().st_size
