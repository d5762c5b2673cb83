"""Records of a replayable file, which `export` has made, listed like those of a commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.cli.dump_log import Dump, refuse_options, shape_of
from rmqtool.query.counts import LogCounts
from rmqtool.query.replay_listing import ReplayListing
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.cli.options import ReadOptions
    from rmqtool.errors import ExitCode
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store


def dump_replay(
    context: Context,
    store: Store,
    wanted: MessageFilter,
    bodies: BodyOptions,
    read: ReadOptions,
    *,
    unwrap: bool,
) -> ExitCode:
    """Lists the records of one replayable file that `wanted` passes."""
    refuse_options(context, bodies, unwrap=unwrap)
    (file,) = store.files
    counts = LogCounts(redaction=bodies.redacted)
    selector = Selector(wanted, choose_kernels(file.size))
    access = Access.of(read.bytes_per_second, careful=True, live=False)
    listing = ReplayListing(file, wanted, selector, counts, access)
    out = Dump(context, listing, shape_of(context, bodies), unwrap=unwrap)
    with context.progress("reading", file.size) as progress:
        out.write(listing.pieces(out.scanned, progress.advance))
    return counts.exit_code()
