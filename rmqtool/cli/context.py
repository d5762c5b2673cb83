"""What a command works with while it runs: the form of its results, the streams, the zone of its times."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.output.console import Console
from rmqtool.output.stream import ByteOut
from rmqtool.output.text import color_enabled, is_terminal, safe
from rmqtool.output.times import zone_of
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rmqtool.cli.options import OutputOptions
    from rmqtool.output.page import Page
    from rmqtool.output.progress import Progress
    from rmqtool.output.rows import Row, Rows
    from rmqtool.output.tablerows import Column
    from rmqtool.output.text_style import TextStyle


def _log() -> None:
    """What modules log goes to standard error, a line each."""
    import logging

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return safe(hide(f"rmqtool: {record.getMessage()}"))

    handler = logging.StreamHandler()
    handler.setFormatter(Line())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("rmqtool").setLevel(logging.DEBUG)


class Context:
    """Made once by a command from its `OutputOptions`: where it writes, talks and shows progress."""

    def __init__(self, options: OutputOptions) -> None:
        if options.debug:
            _log()
        if not options.quiet and is_terminal(sys.stderr):
            from rmqtool.scan import engine

            engine.compiling = _show_compiling
        self.format = _format(options)
        """"table", "ndjson", "json", "csv", or one that the command added"""
        self.int64_as_string = options.int64_as_string
        if options.spreadsheet and self.format != "csv":
            raise UsageError(f"--spreadsheet is for CSV, not for {self.format}")
        self._spreadsheet = options.spreadsheet
        self.color = color_enabled(options.color, sys.stdout)
        self.zone = zone_of(options.tz)
        self.console = Console(quiet=options.quiet, before_write=self._clear, zone=self.zone)
        self.out = ByteOut(before_write=self._clear if is_terminal(sys.stdout) else None)
        """standard output as bytes, for `raw` and `hex`"""
        self._error_color = color_enabled(options.color, sys.stderr)
        self._bar: Progress | None = None

    @property
    def text_style(self) -> TextStyle:
        """How text is drawn on standard output."""
        from rmqtool.output.text_style import TextStyle

        return TextStyle.of_stdout(color=self.color)

    def rows(
        self,
        schema: str,
        columns: Sequence[Column],
        *,
        csv_columns: Sequence[str] = (),
        banner: Callable[[Row], str | None] | None = None,
    ) -> Rows:
        """Where a listing goes, in the form that was asked for.

        `columns` and `banner` are for the table; `csv_columns` are the keys that CSV has, by default those
        of the table.
        """
        if self.format == "table":
            from rmqtool.output.tablerows import TableRows

            return TableRows(self.out, schema, columns, self.text_style, self.console.closing, banner)
        if self.format == "csv":
            from rmqtool.output.csvrows import CsvRows

            keys = csv_columns or [column.key for column in columns]
            return CsvRows(self.out, schema, keys, self.console.closing, spreadsheet=self._spreadsheet)
        from rmqtool.output.jsonrows import JsonRows, NdjsonRows

        form = {"ndjson": NdjsonRows, "json": JsonRows}[self.format]
        return form(self.out, schema, int64_as_string=self.int64_as_string)

    def findings(self, schema: str, stores: Sequence[str], *, several: bool) -> Rows:
        """Where findings go. stores: as they were named; several: whether rows say whose they are."""
        from rmqtool.output.finding_rows import COLUMNS, CSV_COLUMNS, FindingBlocks
        from rmqtool.output.grid import Column

        if self.format == "table" and self.text_style.width is not None:
            return FindingBlocks(self.out, schema, self.text_style, self.console.closing, stores)
        names = ["store"] if several else []
        shown = [*map(Column, names), *COLUMNS]
        return self.rows(schema, shown, csv_columns=[*names, *CSV_COLUMNS])

    def page(self) -> Page:
        """Where a command writes what is not a listing, in table form."""
        from rmqtool.output.page import Page

        return Page(self.out, self.text_style)

    def document(self, schema: str, content: Mapping[str, Any]) -> None:
        """One JSON object with its schema: the whole result of a command that has no rows.

        Values that are iterables, and no lists, are arrays, written as their items come.
        """
        from rmqtool.output.jsonrows import write_document

        write_document(self.out, {"schema": schema, **content}, int64_as_string=self.int64_as_string)

    def progress(self, label: str, total: int | None = None) -> Progress:
        """A bar over `total` bytes, or over files without it; use it as a context manager."""
        from rmqtool.output.progress import Progress

        self._bar = Progress(label, total, enabled=not self.console.quiet, color=self._error_color)
        return self._bar

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.clear()


def _show_compiling(kernel: str) -> None:
    """One line on the terminal, which goes when the work is done."""
    text = f"rmqtool: compiling, once on this machine: {kernel}" if kernel else ""
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


def _format(options: OutputOptions) -> str:
    if options.json and options.format not in {None, "json"}:
        raise UsageError(f"--json and --format {options.format} cannot be combined")
    return "json" if options.json else options.format or "table"
