"""`rmqtool show`: one record in full."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import FORMATS, OutputOptions, ReadOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.target import Answer
    from rmqtool.store.layout import Store


@verb(
    examples=[
        "rmqtool show /data/store 5368711219",
        "rmqtool show /data/store 00000000005368709120:2099",
        "rmqtool show /data/store 7F00000100002A9F0000000140000833 --json",
        "rmqtool show /data/store 0x140000833 --format raw > record.bin",
    ],
    formats=(*FORMATS, "raw", "hex"),
)
def command(
    path: Annotated[
        str,
        typer.Argument(metavar="STORE", help="Store root or commitlog directory; '-' means $RMQTOOL_STORE."),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OFFSET|ID",
            help="Physical offset (decimal, 0x…, SEGMENT:POSITION), offset message id or unique client id.",
        ),
    ],
    *,
    store: StoreOptions,
    read: ReadOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """One record in full, with an annotated hex view.

    Every field with its bytes and its meaning, the record's consume queue entry and index entries beside it,
    and whether they agree. An offset inside a record shows that record; in damage, the header as far as it
    makes sense; elsewhere what is stored there and exit code 1. An id may be an offset message id (its host
    is not compared, only reported) or a unique client id, found by the index or by reading the log.
    """
    from rmqtool.cli.show_record import Shown
    from rmqtool.store.required import refuse_dledger, require_log

    context = Context(output)
    opened = open_store(context, path, store)
    require_log(opened)
    refuse_dledger(opened)
    if context.format in {"raw", "hex"} and bodies.redacted:
        raise UsageError(
            f"--redact cannot be combined with --format {context.format}, which shows whole records"
        )
    if context.format in {"raw", "hex"} and (bodies.body or bodies.body_sha256):
        whole = "it shows whole records"
        raise UsageError(
            f"--body and --body-sha256 cannot be combined with --format {context.format}: {whole}"
        )
    answer = _find(context, opened, target, read)
    answer = _with_unread(context, opened, answer)
    return Shown(context, opened, answer, bodies).write()


def _with_unread(context: Context, opened: Store, answer: Answer) -> Answer:
    """The answer with everything that could not be read and might have changed it; each is warned of."""
    from dataclasses import replace

    from rmqtool.cli.left_out import noted, undecoded_beside_log, unlisted, warned
    from rmqtool.query.lost_end import log_gone
    from rmqtool.query.unread import unread_beside

    record = answer.record()
    beside = unread_beside(opened, record) if record is not None and record.place.is_record else []
    for one in (*answer.unreadable, *beside):
        reported = one.get("error") or _why(one)
        if not noted(context, opened, one["path"]):
            context.console.warn(reported if one["path"] in reported else f"{one['path']}: {reported}")
    log = [
        *unlisted(opened, context, commitlog=True),
        *undecoded_beside_log(opened, context),
        *warned(log_gone(opened), context),
    ]
    rows = {(row["path"], row.get("error")): row for row in (*log, *answer.unreadable, *beside)}
    return replace(answer, unreadable=tuple(rows.values()))


def _why(row: dict[str, Any]) -> str:
    from rmqtool.store.coverage import Incomplete

    if row["reason"] == Incomplete.DAMAGE and "physical_offset" in row:
        return f"{row['length']} bytes from {row['physical_offset']} on are damaged"
    return "not read, interrupted"


def _require_form(target: str) -> None:
    number = r"(0[xX][0-9a-fA-F]+|[0-9]+)"
    if not re.fullmatch(f"{number}(:{number})?", target):
        forms = "a decimal, 0x… or SEGMENT:POSITION offset, or an id of 32 or 56 hexadecimal digits"
        raise UsageError(f"'{target}' is not a valid OFFSET or ID: give {forms}")


def _find(context: Context, opened: Store, target: str, read: ReadOptions) -> Answer:
    from rmqtool.cli.parse import named, parse_offset
    from rmqtool.query.target import at_offset, by_id, is_id

    if not is_id(target):
        with named("OFFSET|ID"):
            _require_form(target)
            offset = parse_offset(target, opened.segments.physical_offset)
        return at_offset(opened, target, offset)
    total = sum(one.size for one in opened.segments)
    with context.progress("reading", total) as progress:
        reading = read.of_log(opened, progress.advance)
        return by_id(opened, target, reading)
