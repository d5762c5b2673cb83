"""What `--help` shows: examples first, options of the command itself, and those that many share in a line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer.core

from rmqtool.output.text import color_enabled
from rmqtool.output.text_style import TextStyle, cells, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SHARED = ("Reading", "Filters", "Bodies", "Output", "Spark")
"""panels of options that many commands have: their names in a line, more with --help-all"""
_COLUMN = 26
"""where explanations begin"""


class HelpPage:
    """Lines of a page of help; drawn for standard output, 80 columns wide in pipes."""

    def __init__(self) -> None:
        self._text_style = TextStyle.of_stdout(color=color_enabled("auto", sys.stdout))
        self._width = min(self._text_style.width or 80, 100)
        self._lines: list[str] = []

    def heading(self, text: str) -> None:
        """A title behind an empty line."""
        self._lines += ["", self._text_style.paint(text, "bold")]

    def prose(self, text: str, lead: str = "") -> None:
        """Paragraphs of one line each, or of several as in a docstring."""
        for paragraph in text.split("\n\n"):
            if self._lines and not lead:
                self._lines.append("")
            self._lines += wrap(" ".join(paragraph.split()), self._width, lead)

    def command(self, line: str) -> None:
        """A command to copy, in one line."""
        self._lines.append(f"  {line}")

    def pairs(self, rows: Iterable[tuple[str, str]], column: int = _COLUMN) -> None:
        """Names, and what they mean beside them."""
        for name, text in rows:
            lead = f"  {name}"
            if cells(lead) > column - 2:
                self._lines.append(self._text_style.paint(lead, "cyan"))
                self._lines += wrap(text, self._width, " " * column)
                continue
            first, *more = wrap(text, self._width, " " * column)
            self._lines += [self._text_style.paint(lead, "cyan") + first[cells(lead) :], *more]

    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines)


def command_page(command: Any, context: Any, *, full: bool) -> str:
    """Help of one command. full: every option is explained."""
    page = HelpPage()
    function = command.documented
    summary, _, description = function.doc.partition("\n\n")
    arguments = [item for item in command.params if not isinstance(item, typer.core.TyperOption)]
    usage = " ".join(_argument(item) for item in arguments)
    page.prose(" ".join(filter(None, (f"Usage: {context.command_path} [OPTIONS]", usage))))
    page.prose(summary)
    page.heading("Examples")
    for line in function.examples:
        page.command(line)
    if description:
        page.prose(description)
    if arguments:
        page.heading("Arguments")
        page.pairs((str(item.metavar or item.name), item.help or "") for item in arguments)
    panels: dict[str, list[Any]] = {}
    for item in command.params:
        if isinstance(item, typer.core.TyperOption):
            panels.setdefault(str(item.rich_help_panel or "Options"), []).append(item)
    for name, items in panels.items():
        if full or name not in _SHARED:
            page.heading(name)
            page.pairs((_option(item), _explained(item)) for item in items)
    folded = {} if full else {name: items for name, items in panels.items() if name in _SHARED}
    if folded:
        page.heading(f"Shared options (explained by {context.command_path} --help-all)")
        page.pairs(((name, " ".join(item.opts[0] for item in items)) for name, items in folded.items()), 12)
    return page.text()


def group_page(
    path: str, summary: str, areas: Mapping[str, Mapping[str, str]], examples: Sequence[str], closing: str
) -> str:
    """Help of the program, or of a group of it: what there is, by area."""
    page = HelpPage()
    page.prose(f"Usage: {path} COMMAND [OPTIONS] …")
    page.prose(summary)
    if examples:
        page.heading("Examples")
        for line in examples:
            page.command(line)
    column = 4 + max(cells(name) for rows in areas.values() for name in rows)
    for area, rows in areas.items():
        page.heading(area)
        page.pairs(rows.items(), column)
    page.prose(closing)
    return page.text()


def _argument(item: Any) -> str:
    name = str(item.metavar or item.name.upper())
    return name if item.required or name.startswith("[") else f"[{name}]"


def _option(item: Any) -> str:
    names = ", ".join((*item.opts, *item.secondary_opts))
    if item.is_flag:
        return names
    choices = item.type_descriptor.choices
    return f"{names} {'|'.join(map(str, choices)) if choices else item.metavar or 'VALUE'}"


def _explained(item: Any) -> str:
    default = f" Default: {item.default}." if isinstance(item.default, str) else ""
    return f"{item.help or ''}{default}"
