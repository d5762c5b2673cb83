"""`rmqtool map`: the segments of a commit log, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, worst

if TYPE_CHECKING:
    from typing import Any

    from rmqtool.report.segment_map import SegmentMap
    from rmqtool.store.coverage import Incomplete, Row
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.map/1"
CSV_COLUMNS = ("type", "path", "segment", "size", "records", "damaged_bytes", "physical_offset", "length")


@verb(
    examples=[
        "rmqtool map /data/store",
        "rmqtool map /data/store --color always | less -R",
        "rmqtool map /data/store --json | jq '.rows[] | select(.damaged_bytes > 0) | .path'",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """A map of the commit log: every segment drawn, records by topic, damage, the unwritten tail.

    One line per segment, as wide as the terminal: damage is shown however small it is, elsewhere the
    topic with most of the bytes. Without colour, topics are letters. The other formats have one row per
    segment with the bytes of every state and topic, in total and cell by cell.

    Exit 1 when a segment is damaged or missing, 3 when something could not be read.
    """
    from rmqtool.report.segment_map import SegmentMap
    from rmqtool.store.coverage import rest_of_log

    context = Context(output)
    opened, missing = open_log(context, path, store)
    found = SegmentMap(opened, len(opened.segments))
    found.not_covered += missing

    def left(reason: Incomplete) -> list[Row]:
        return rest_of_log(list(opened.segments), found.reached, reason)

    if context.format == "table":
        _read(context, opened, read, found)
        _draw(context, found)
    else:
        with context.rows(SCHEMA, [], csv_columns=CSV_COLUMNS) as rows:
            rows.covered, rows.left = found.summary, left
            _read(context, opened, read, found)
            rows.write_rows(found.document_rows())
            rows.finish(found.summary())
    return worst(_codes(found))


def _read(context: Context, opened: Store, read: ReadOptions, found: SegmentMap) -> None:
    from rmqtool.report.map_reading import read_map

    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        read_map(opened, read.of_log(opened, progress.advance), found)


def _draw(context: Context, found: SegmentMap) -> None:
    from rmqtool.report.terminal import Drawing

    page = context.page()
    Drawing(page, context.text_style, found, page.width or 80).write()
    page.close()
    context.console.closing({"type": "summary", **_counted(found)})


def _counted(found: SegmentMap) -> dict[str, Any]:
    """The summary without what the legend says."""
    return {name: one for name, one in found.summary().items() if name not in {"states", "topics"}}


def _codes(found: SegmentMap) -> list[ExitCode]:
    codes = []
    if any(row["reason"] == "unreadable" for row in found.not_covered):
        codes.append(ExitCode.INCOMPLETE)
    if found.harmed:
        codes.append(ExitCode.DAMAGE)
    return codes
