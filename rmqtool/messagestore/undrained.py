"""Which queues of an open store hold messages that nobody has consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.query.groups import unconsumed_queues
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.config import StoreConfig


def undrained(
    root: str,
    config: StoreConfig,
    there: Callable[[], list[tuple[str, int]]],
    offsets: Callable[[str, int], tuple[int, int]],
    topic: str,
    queues: range,
) -> list[int]:
    """Which of these queues of a topic hold messages that were not consumed.

    there: all queues that there are. offsets: of a queue's first message and of the next one.
    """
    going = {number: offsets(topic, number) for of, number in there() if of == topic and number in queues}
    return unconsumed_queues(Store.open(root, config=config), topic, going)
