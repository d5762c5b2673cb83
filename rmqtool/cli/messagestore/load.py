"""`rmqtool store load`: the messages of a replayable file into a store."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, Stop, open_engine
from rmqtool.cli.options import OutputOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, worst

if TYPE_CHECKING:
    from rmqtool.messagestore.loading import Loaded, Refused
    from rmqtool.store.bytes import ByteSource

SCHEMA = "rmqtool.store-load/1"


@verb(
    examples=[
        "rmqtool store load /data/store messages.replay",
        "rmqtool store load /data/store - --json < messages.replay",
    ]
)
def command(
    path: DirPositional,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file that export wrote; if omitted or '-', standard input."),
    ] = "-",
    *,
    engine: EngineOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Put the messages of a replayable file, which export wrote.

    A message keeps topic, queue number, body, properties, flags, born time and host, and gets new offsets
    and a new store time. Topics that do not exist are created, with as many queues as the file has
    messages for. What is refused is listed. Everything is synced to disk at the end. Exit code 1: some
    were refused; 3: the file is damaged or ends too early; 4: the system did not write.
    """
    from rmqtool.output.rows import cut_short
    from rmqtool.output.tablerows import Column
    from rmqtool.store.coverage import Incomplete, coverage

    context = Context(output)
    columns = [
        Column("status"),
        Column("topic", shrinks=True),
        Column("queue_id", "queue", right=True),
        Column("position", right=True),
        Column("message", shrinks=True),
    ]
    keys = ("type", "status", "topic", "queue_id", "position", "message")
    with (
        Stop() as stop,
        open_engine(context, path, engine, release=version.release) as store,
        _source(file, stop) as source,
        context.rows(SCHEMA, columns, csv_columns=keys) as rows,
    ):
        stop.defer()
        loader, before = store.loader(), store.segments()
        size = None if source.name == "-" else source.size
        with context.progress("loading", size) as progress:
            for refused in loader.load(source, lambda: stop.asked):
                rows.write_rows([_row(one) for one in refused])
                progress.reach(loader.done.read)
        flushed, done = store.flush(), loader.done
        summary = _summary(done, store.segments() - before)
        if stop.asked:
            left = [{"path": file, "position": done.read, "reason": Incomplete.INTERRUPTED.value}]
            rows.finish(cut_short(summary, Incomplete.INTERRUPTED, left))
            return ExitCode.INTERRUPTED
        rows.finish(summary | coverage(_not_covered(done, file)))
    return _code(loader.done, flushed=flushed)


def _row(one: Refused) -> dict[str, Any]:
    return {
        "type": "refused",
        "status": one.status.value,
        "topic": one.topic,
        "queue_id": one.queue_id,
        "position": one.position,
        "message": one.message,
    }


def _summary(done: Loaded, segments: int) -> dict[str, Any]:
    from rmqtool.messagestore.messages import PutStatus

    counts = Counter({PutStatus.PUT_OK: done.messages}) + done.refused
    return {
        "segments": segments,
        "bytes": done.bytes,
        "messages": done.messages,
        "refused": done.refused.total(),
        "by_status": {status.value: count for status, count in sorted(counts.items())},
    }


def _not_covered(done: Loaded, file: str) -> list[dict[str, Any]]:
    """What lies behind the end of a file that is not whole."""
    from rmqtool.store.coverage import Incomplete

    if done.end is None or done.end.whole:
        return []
    reason = Incomplete.DAMAGE.value
    return [{"path": file, "position": done.end.position, "reason": reason, "error": done.end.stop.value}]


def _code(done: Loaded, *, flushed: bool) -> ExitCode:
    from rmqtool.messagestore.messages import PutStatus

    of_message = {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}
    codes = [ExitCode.OK if flushed and not set(done.refused) - of_message else ExitCode.INTERNAL]
    if done.refused:
        codes.append(ExitCode.DAMAGE)
    if done.end is not None and not done.end.whole:
        codes.append(ExitCode.INCOMPLETE)
    return worst(codes)


def _source(file: str, stop: Stop) -> ByteSource:
    from rmqtool.store.access import open_source
    from rmqtool.store.bytes import MemorySource
    from rmqtool.store.pipe import PipeSource

    if file != "-":
        return open_source(file, "pread")
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError):  # closed, or no file at all
        return MemorySource(b"" if sys.stdin is None else sys.stdin.buffer.read(), "-")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open_source(f"/proc/self/fd/{descriptor}", "pread", name="standard input")
    return PipeSource(descriptor, "-", stop.descriptor)
