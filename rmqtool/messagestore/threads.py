"""What works beside an open store: begun when it is opened, ended in the order of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import ExitStack

    from rmqtool.messagestore.background import Background
    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.expiry import Expiry
    from rmqtool.messagestore.flushing import Flusher
    from rmqtool.messagestore.replication.calls import Replication
    from rmqtool.messagestore.writing import Writer


class Threads:
    """Flushing, checkpoints, dispatching, expiry and replication of a store; the first four begin here.

    clean: the store was closed in order. stack: ends them where opening fails further on.
    """

    def __init__(
        self,
        background: Background,
        dispatching: Dispatching,
        expiry: Expiry,
        replication: Replication,
        writer: Writer,
        flusher: Flusher,
        *,
        clean: bool,
        stack: ExitStack,
    ) -> None:
        self._background, self._dispatching, self._expiry = background, dispatching, expiry
        self._replication, self._writer, self._flusher = replication, writer, flusher
        dispatching.begin()
        stack.callback(dispatching.stop)
        if not clean:
            expiry.follow()  # a kill may have cut it off; a broker does that a minute later
        expiry.begin()
        stack.callback(expiry.close)

    def end(self) -> bool:
        """As `DefaultMessageStore#shutdown`; whether all that was put is on the medium."""
        self._replication.end_following()
        self._expiry.close()
        self._background.close_checkpoints()
        self._background.close_flushing()
        self._writer.close()
        self._replication.end_sending()
        flushed = self._flusher.flush_all()
        self._dispatching.stop()
        self._dispatching.catch_up()
        self._dispatching.close()
        self._background.last_checkpoint()
        return flushed
