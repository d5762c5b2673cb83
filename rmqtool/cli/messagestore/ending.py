"""What `store commit` and `store rollback` have in common: the id of an open transaction, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import EngineOptions, open_engine
from rmqtool.cli.parse import named, parse_text

if TYPE_CHECKING:
    from rmqtool.cli.options import OutputOptions
    from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.store-transaction/1"
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The transaction_id that store put --transaction answered.")
]


def end(
    path: str, transaction_id: str, engine: EngineOptions, output: OutputOptions, *, commit: bool
) -> ExitCode:
    """Commits or rolls back one transaction and says so."""
    from rmqtool.cli.messagestore.acks import COLUMNS, CSV_COLUMNS, Acks
    from rmqtool.messagestore.messages import Ack, PutStatus

    context = Context(output)
    with named("ID"):
        parse_text(transaction_id)
    acks = Acks()
    with (
        open_engine(context, path, engine) as store,
        context.rows(SCHEMA, COLUMNS, csv_columns=(*CSV_COLUMNS, "transaction_id", "state")) as rows,
    ):
        row = {"transaction_id": transaction_id, "state": "committed" if commit else "rolled back"}
        if commit:
            found = acks.row(store.commit_transaction(transaction_id), None, 0)
        else:
            store.rollback_transaction(transaction_id)
            nowhere = Ack(PutStatus.PUT_OK, "", -1, -1, -1, transaction_id, (b"", 0))
            found = acks.row(nowhere, None, 0) | {
                "topic": None,
                "queue_offset": None,
                "physical_offset": None,
            }
        if acks.exit_code():
            row["state"] = "open"
        rows.write_rows([found | row])
        rows.finish({"transactions": 1, "complete": True})
    return acks.exit_code()
