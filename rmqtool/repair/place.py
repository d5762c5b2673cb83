"""What is known of a damaged record, and stays true of the tombstone that takes its place."""

from __future__ import annotations

from dataclasses import dataclass

_NO_HOST = (bytes(4), 0)


@dataclass(frozen=True, slots=True)
class Place:
    """What stays true of the damaged record.

    Timestamps are epoch ms. `born_timestamp` None: the store timestamp. `magic` None: the one that a broker
    chooses for this topic. The length of the hosts' addresses, 4 or 16 bytes, decides the host layout. Of
    `sys_flag` only the bits that a tombstone may have are taken. `batch_size`: number of queue positions of
    an inner batch. `compacted`: the topic has `cleanup.policy=COMPACTION`.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    store_timestamp: int
    born_timestamp: int | None = None
    magic: int | None = None
    born_host: tuple[bytes, int] = _NO_HOST
    store_host: tuple[bytes, int] = _NO_HOST
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    batch_size: int | None = None
    compacted: bool = False
