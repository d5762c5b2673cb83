"""What readers ask of a queue and of the log behind it; `queue_view` and `log_view` answer from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rmqtool.broker.traits import Traits


class LogStart(Protocol):
    """A log that may have expired in front."""

    @property
    def low(self) -> int:
        """Lowest physical offset, -1 without files."""
        ...


class QueueBounds(Protocol):
    """Units of one size, between two queue offsets."""

    @property
    def traits(self) -> Traits:
        """What the release does."""
        ...

    @property
    def width(self) -> int:
        """Bytes of a unit."""
        ...

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that is served."""
        ...

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""
        ...
