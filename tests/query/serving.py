"""What the tests of queue answers share: which goldens have them, and a queue of one, open."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import fixtures
from rmqtool.query.served_queue import ReadRules, served_queue
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.queue_view import QueueView

NAMES = [name for name in fixtures.golden_names("api") if "rocksdb" not in name and "unclean" not in name]
"""queues in RocksDB are not read, and unclean copies have Java's answers after recovery"""


def rules_of(found: fixtures.Golden) -> ReadRules:
    return ReadRules(found.release, "given")


@contextmanager
def queue(found: fixtures.Golden, topic: str, number: int) -> Iterator[QueueView]:
    with served_queue(Store.open(found.path), topic, number, rules_of(found)) as view:
        yield view
