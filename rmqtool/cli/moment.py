"""The moment for which waiting messages are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.parse import named, parse_time

if TYPE_CHECKING:
    from rmqtool.output.times import Zone

AtOption = Annotated[
    str,
    typer.Option("--at", metavar="TIME", help="Evaluate as of TIME, for a copied store; default now."),
]


def moment(text: str, zone: Zone) -> int:
    """In ms. Raises `UsageError`."""
    with named("--at"):
        return parse_time(text, zone)
