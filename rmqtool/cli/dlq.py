"""`rmqtool dlq`: messages that were given back too often."""

from __future__ import annotations

from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.returned import ReturnedOptions, list_returned
from rmqtool.cli.verb import verb


@verb(
    examples=[
        "rmqtool dlq /data/store",
        "rmqtool dlq /data/store --group order-service --to dead.replay --to-origin",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    returned: ReturnedOptions,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> int:
    """Dead-letter messages: those that were retried too often.

    Group, original topic and id, and number of retries. With --to they are written to a file for store load,
    with --to-origin for the topics that they came from, to be consumed again.
    """
    return list_returned("dlq", path, returned, store, read, output)
