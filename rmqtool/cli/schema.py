"""`rmqtool schema`: JSON Schemas of what the commands print."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqtool.cli.completing import complete_schemas
from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

SCHEMA = "rmqtool.schema/1"
KEYS = ("name", "about")


@verb(
    examples=[
        "rmqtool schema",
        "rmqtool schema verify > verify.schema.json",
        "rmqtool schema rmqtool.doctor/1",
    ]
)
def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="As in the key schema of a document (rmqtool.dump/1), or the middle part alone (dump).",
            show_default=False,
            autocompletion=complete_schemas,
        ),
    ] = None,
    *,
    output: OutputOptions,
) -> ExitCode:
    """JSON Schemas of what the commands print as JSON, and of plans and journals.

    Without NAME all names are listed. A schema (draft 2020-12) is of the document of --json; a line of NDJSON
    is its $defs/row, the last one its $defs/summary. What it names is there in every release of that version;
    further keys may come.
    """
    from rmqtool.output.schemas.catalogue import full_name, schemas

    context = Context(output)
    known = schemas()
    if name is None:
        _list(context, {one: schema["description"].partition(". ")[0] for one, schema in known.items()})
        return ExitCode.OK
    if full_name(name) not in known:
        raise UsageError(f"there is no schema {name}{_near(name, list(known))}")
    _print(context, known[full_name(name)])
    return ExitCode.OK


def _list(context: Context, names: dict[str, str]) -> None:
    from rmqtool.output.tablerows import Column

    with context.rows(SCHEMA, [Column("name"), Column("about")], csv_columns=("type", *KEYS)) as rows:
        rows.write_rows({"type": "schema", "name": name, "about": about} for name, about in names.items())
        rows.finish({"schemas": len(names), "complete": True})


def _print(context: Context, schema: object) -> None:
    import json

    context.out.write(json.dumps(schema, indent=2).encode() + b"\n")
    context.out.flush()


def _near(name: str, known: list[str]) -> str:
    from rmqtool.query.near import near, suggestion

    plain = [one.removeprefix("rmqtool.").removesuffix("/1") for one in known]
    return suggestion(near(name.removeprefix("rmqtool.").removesuffix("/1"), plain))
