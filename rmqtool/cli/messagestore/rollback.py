"""`rmqtool store rollback`: ends an open transaction."""

from __future__ import annotations

from rmqtool.cli.messagestore.ending import IdArgument, end
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode


@verb(examples=["rmqtool store rollback /data/store AC120002000078BF7C0E1B0D3A2B0000"])
def command(
    path: DirPositional, transaction_id: IdArgument, *, engine: EngineOptions, output: OutputOptions
) -> ExitCode:
    """Roll back an open transaction: its message is never delivered.

    ID is what store put --transaction answered, also with a broker's half messages: their UNIQ_KEY. Exit
    code 1: no such transaction is open.
    """
    return end(path, transaction_id, engine, output, commit=False)
