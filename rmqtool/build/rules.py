"""What decides the bytes of derived files: sizes, switches and the differences of releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS
from rmqtool.broker.extension_files import extension_units
from rmqtool.scan.multi import MultiDispatch
from rmqtool.scan.units import BATCH_UNIT, UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Rules:
    """Sizes are bytes of whole files.

    extension: `enableConsumeQueueExt`. multi_dispatch: which records feed further queues, NONE also where
    `enableMultiDispatch` is off; lmq: `enableLmq`. levels: delays in ms by level, None for the broker's
    defaults. batch_topics: those whose queues are batch queues. hash_slots, index_items: of an index file.
    every_put: `hash_slot_count` counts puts, as before 4.7.1. header_at_stop: an index file without items has
    its header written, as since 5.0.
    """

    consume_queue_size: int = 6_000_000
    batch_queue_size: int = 13_800_000
    extension_size: int = 50_331_648
    extension: bool = False
    multi_dispatch: MultiDispatch = MultiDispatch.NONE
    lmq: bool = False
    levels: Mapping[int, int] | None = None
    batch_topics: frozenset[str] = field(default_factory=frozenset)
    hash_slots: int = DEFAULT_SLOTS
    index_items: int = DEFAULT_ITEMS
    every_put: bool = False
    header_at_stop: bool = True

    @property
    def units(self) -> int:
        """Units of a plain queue file."""
        return self.consume_queue_size // UNIT.itemsize

    @property
    def batch_units(self) -> int:
        """Units of a batch queue file."""
        return self.batch_queue_size // BATCH_UNIT.itemsize

    @property
    def extends(self) -> bool:
        """Whether queues have extension files, and units fit into them."""
        return self.extension and extension_units(self.extension_size) > 0
