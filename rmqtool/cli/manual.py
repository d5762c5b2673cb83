"""Manual pages, made of the commands: `python -m rmqtool.cli.manual docs/man`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.cli.commands import AREAS, COMMANDS, FIRST, GROUPS
from rmqtool.cli.described import Item, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SECTION = 1
_MARKED = {
    "\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq",
}  # fmt: skip
"""what a formatter would take for something else, or draw as a typographic sign"""
_EXIT = (
    ("0", "Clean, or done, or nothing to do."),
    ("1", "Damage or a problem was found, is left, or a plan would change it; a query that found nothing."),
    ("2", "Wrong usage."),
    ("3", "Incomplete: part of what was asked for could not be read or covered."),
    ("4", "I/O error or internal error; --debug shows it."),
    ("5", "A running broker holds the store."),
    ("6", "A format newer than this release knows."),
    ("130", "Interrupted."),
    ("141", "Nobody reads the output any more."),
)
_ABOUT = "Inspects, repairs and queries Apache RocketMQ stores without a broker"


def pages() -> dict[str, str]:
    """Each page by its file name."""
    found = {_file("rmqtool"): _program()}
    for name in COMMANDS:
        found[_file(_title(name))] = "\n".join(_command(name)) + "\n"
    return found


def escape(text: str) -> str:
    """Text that a formatter shows as it is, in the middle of a line or at its beginning."""
    marked = "".join(_MARKED.get(one, one) if one.isascii() else f"\\[u{ord(one):04X}]" for one in text)
    return f"\\&{marked}" if marked.startswith(".") else marked


def write(folder: Path) -> None:
    """All pages into `folder`; those of commands that are no more go."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in folder.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="ascii")


def _title(name: str) -> str:
    return f"rmqtool-{name.replace(' ', '-')}"


def _file(title: str) -> str:
    return f"{title}.{_SECTION}"


def _head(title: str, about: str) -> Iterator[str]:
    yield f'.TH {escape(title.upper())} {_SECTION} "" "rmqtool" "rmqtool"'
    yield ".ad l"
    yield ".nh"
    yield ".SH NAME"
    yield f"{escape(title)} \\- {escape(about.removesuffix('.'))}"


def _command(name: str) -> Iterator[str]:
    command = describe(name)
    yield from _head(_title(name), command.summary)
    yield ".SH SYNOPSIS"
    yield f"\\fBrmqtool {escape(name)}\\fR [\\fIOPTIONS\\fR] \\fI{escape(command.usage)}\\fR"
    yield ".SH DESCRIPTION"
    yield from _prose("\n\n".join(filter(None, (command.summary, command.description))))
    yield from _examples(command.examples)
    if command.arguments:
        yield ".SH ARGUMENTS"
        yield from _items(command.arguments)
    yield ".SH OPTIONS"
    for title, options in command.panels.items():
        if title != "Options":
            yield f".SS {escape(title)}"
        yield from _items(options)
    yield ".SH SEE ALSO"
    yield "\\fBrmqtool\\fR(1)"


def _program() -> str:
    return "\n".join(_program_lines()) + "\n"


def _program_lines() -> Iterator[str]:
    yield from _head("rmqtool", _ABOUT)
    yield ".SH SYNOPSIS"
    yield "\\fBrmqtool\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ..."
    yield ".SH DESCRIPTION"
    yield from _prose(
        "Each command has a page of its own. rmqtool help COMMAND, or COMMAND --help, shows its short form, "
        "COMMAND --help-all all options. Data goes to standard output, messages to standard error."
    )
    yield from _examples(FIRST)
    for area, names in _areas().items():
        yield f".SH {escape(area.upper())}"
        for name in names:
            yield ".TP"
            yield f"\\fB{escape(_title(name))}\\fR(1)"
            yield escape(COMMANDS[name].help)
    yield ".SH ENVIRONMENT"
    yield from _pairs((("RMQTOOL_STORE", "The store of commands that are called without one, or with -."),
                       ("NO_COLOR", "No colours.")))  # fmt: skip
    yield ".SH EXIT STATUS"
    yield from _pairs(_EXIT)


def _areas() -> dict[str, list[str]]:
    """Commands by area, those of a group together; what has no area under More."""
    found: dict[str, list[str]] = {area: [] for area in (*AREAS, "More")}
    for name in COMMANDS:
        first = name.partition(" ")[0] if name.partition(" ")[0] in GROUPS else name
        found[next((area for area, names in AREAS.items() if first in names), "More")].append(name)
    return {area: names for area, names in found.items() if names}


def _prose(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield ".PP"
        yield escape(" ".join(paragraph.split()))


def _examples(lines: Sequence[str]) -> Iterator[str]:
    yield from (".SH EXAMPLES", ".nf", *map(escape, lines), ".fi")


def _items(items: Iterable[Item]) -> Iterator[str]:
    for one in items:
        option = one.names[0].startswith("-")
        names = ", ".join(f"\\f{'B' if option else 'I'}{escape(name)}\\fR" for name in one.names)
        value = "|".join(one.choices) or one.value
        shown = f" \\fI{escape(value)}\\fR".replace("|", "|\\:") if value else ""
        yield from (".TP", names + shown, escape(one.help))


def _pairs(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield from (".TP", f"\\fB{escape(name)}\\fR", escape(text))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
