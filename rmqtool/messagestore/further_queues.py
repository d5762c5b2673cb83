"""Queues that a record feeds besides its own: which names it lists, and which counter numbers each.

4.9.x: `MultiDispatch#wrapMultiDispatch`; 5.0 to 5.1: `ConsumeQueue#assignQueueOffset`; 5.3.2: `LmqDispatch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.java import java_parse_int, java_split
from formats.properties import INNER_MULTI_QUEUE_OFFSET
from rmqtool.broker.traits import traits_of
from rmqtool.messagestore.messages import IllegalMessageError, PutStatus
from rmqtool.scan.multi import LMQ_PREFIX, MultiDispatch, is_exempt, takes_number
from rmqtool.store.names import names_directory
from rmqtool.store.releases import version_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.store.config import StoreConfig

    Key = tuple[str, int]

_COUNTS_LIGHT_ONLY = (5, 0, 0)
_BY_LMQ = (5, 3, 2)
"""since then `enableLmq` fills in lists, and `enableMultiDispatch` is for dispatching alone"""


class FurtherQueues:
    """The rules of a release with its settings."""

    def __init__(self, release: str, config: StoreConfig) -> None:
        version, self._rule = version_key(release), traits_of(release).multi_dispatch
        self._lmq = config.enable_lmq
        self._counts_all = version < _COUNTS_LIGHT_ONLY
        self._dispatches = config.enable_multi_dispatch
        switched = config.enable_lmq if version >= _BY_LMQ else config.enable_multi_dispatch
        self.on = switched and self._rule is not MultiDispatch.NONE
        """lists of queues are looked at"""

    def key(self, name: str, queue_id: int) -> Key | None:
        """Whose counter numbers a unit in a named queue; None where the list gets no number.

        queue_id: of the record.
        """
        if not takes_number(name, lmq=self._lmq):
            return name, 0
        return (name, queue_id) if self._counts_all else None

    def names(self, topic: str, listed: str | None) -> tuple[str, ...]:
        """Names in the value of `INNER_MULTI_DISPATCH`; none where it counts for nothing."""
        if not self.on or not listed or not listed.strip() or is_exempt(topic, self._rule):
            return ()
        return tuple(java_split(listed, ","))

    def refuse(self, topic: str, names: tuple[str, ...]) -> None:
        """Raises `IllegalMessageError` for a list that a broker takes at the price of its queues.

        A name twice leaves a gap; one that no counter numbers loses the units of all, or stops dispatching.
        """
        for number, name in enumerate(names):
            why = None
            if not names_directory(name):
                why = "is not a queue name"
            elif name in names[:number] or name == topic:
                why = "is named twice"
            elif self.key(name, 0) is None:
                why = f"does not begin with {LMQ_PREFIX}, or enableLmq is off"
            if why is not None:
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"further queue {name!r} {why}")

    def stored(self, names: tuple[str, ...], properties: Mapping[str, str]) -> tuple[int | None, ...] | None:
        """Numbers that a record to be replayed has already, one a name; None when it has none.

        Raises `IllegalMessageError` where a broker's dispatching would stop at it for good.
        """
        text = properties.get(INNER_MULTI_QUEUE_OFFSET, "")
        if not text.strip():
            return None
        numbers = [java_parse_int(one, 64) for one in java_split(text, ",")]
        if self._dispatches and len(numbers) == len(names) and None in numbers:
            raise IllegalMessageError(
                PutStatus.MESSAGE_ILLEGAL, f"{INNER_MULTI_QUEUE_OFFSET} holds what is not a number"
            )
        return (*numbers, *([None] * (len(names) - len(numbers))))[: len(names)]
