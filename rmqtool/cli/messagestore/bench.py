"""`rmqtool store bench`: the message store beside other embedded stores, on this disk."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.parse import named, parse_int, parse_size
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, StoreIOError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.messagestore.bench.work import Bench

SCHEMA = "rmqtool.store-bench/1"
_BODIES = ("256", "1K")
_MOST_BODY, _MOST = 4 << 20, 100_000_000
SEGMENT = 1 << 28


@verb(
    examples=[
        "rmqtool store bench",
        "rmqtool store bench /data/scratch --work put --work key --engine sqlite --json",
        "rmqtool store bench /data/scratch --java /opt/rocketmq/lib --engine rmqtool --engine java",
        "rmqtool store bench /data/scratch --copy",
    ]
)
def command(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="DIR",
            help="Directory on the disk in question; default: that of temporary files.",
            show_default=False,
        ),
    ] = None,
    work: Annotated[
        list[str] | None,
        typer.Option("--work", metavar="NAME", help="What is measured; default all.", show_default=False),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", metavar="NAME", help="Which stores; default all.", show_default=False),
    ] = None,
    body: Annotated[
        list[str] | None,
        typer.Option(
            "--body", metavar="SIZE", help="Sizes of bodies; default 256 and 1K.", show_default=False
        ),
    ] = None,
    count: Annotated[str, typer.Option("--count", metavar="N", help="Messages of each figure.")] = "20000",
    java: Annotated[
        str | None,
        typer.Option(
            "--java",
            metavar="DIR",
            help="Directory with the jars of a RocketMQ release (its lib), for the engine java.",
            show_default=False,
        ),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Compare ways to copy one segment instead.")] = False,
    *,
    output: OutputOptions,
) -> ExitCode:
    """Measure the message store beside Java's, SQLite, RocksDB, LevelDB, LMDB and a file.

    All get the same messages; each works in a directory of its own below DIR, removed at the end. put
    and put_many are not synced, put_sync and put_sync_16 are, with one writer and 16. A store whose binding
    is not installed is named and left out (pip install 'rmqtool[bench]'), and so is Java's without --java;
    it runs in a JVM of its own (a JDK, 11 or later), each work for two seconds before it is measured.
    """
    from rmqtool.messagestore.bench.copies import copies
    from rmqtool.messagestore.bench.engines import ENGINES
    from rmqtool.messagestore.bench.java import check_jars
    from rmqtool.messagestore.bench.work import WORKS
    from rmqtool.output.rows import cut_short
    from rmqtool.output.tablerows import Column
    from rmqtool.store.coverage import Incomplete

    context = Context(output)
    works, engines = _some("--work", work, WORKS), _some("--engine", engine, ENGINES)
    with named("--count"):
        number = parse_int(count, minimum=1, maximum=_MOST)
    with named("--body"):
        sizes = [parse_size(one) for one in body or _BODIES]
        if max(sizes) > _MOST_BODY:
            raise UsageError("a body has 4 MiB at most")
    jars = None if java is None else Path(java)
    if jars is not None:
        with named("--java"):
            check_jars(jars)
    columns: tuple[str, ...] = ("way", "bytes", "seconds", "bytes_per_second")
    if not copy:
        columns = ("work", "engine", "body_bytes", "count", "seconds", "per_second", "ratio")
    shown = [Column(name, right=name not in {"work", "engine", "way"}) for name in columns]
    with _directory(path) as root, context.rows(SCHEMA, shown, csv_columns=("type", *columns)) as rows:
        done = 0
        try:
            if copy:
                for one in copies(root, SEGMENT):
                    done += 1
                    rate = round(one.bytes / one.seconds)
                    seconds = round(one.seconds, 6)
                    rows.write_rows(
                        [{"type": "copy", **one._asdict(), "seconds": seconds, "bytes_per_second": rate}]
                    )
                rows.finish({"figures": done, "complete": True})
                return ExitCode.OK
            left_out: dict[str, str] = {}
            for row in _figures(root, engines, works, sizes, number, jars, left_out):
                done += 1
                rows.write_rows([row])
                rows.flush()
        except KeyboardInterrupt:
            reason = [{"path": str(root), "reason": Incomplete.INTERRUPTED.value}]
            rows.finish(cut_short({"figures": done}, Incomplete.INTERRUPTED, reason))
            return ExitCode.INTERRUPTED
        for name, why in left_out.items():
            context.console.note(f"{name} is left out: {why}")
        rows.finish({"figures": done, "left_out": left_out, "complete": True})
    return ExitCode.OK


def _figures(
    root: Path,
    engines: Sequence[str],
    works: Sequence[str],
    sizes: Sequence[int],
    number: int,
    jars: Path | None,
    left_out: dict[str, str],
) -> Iterator[dict[str, Any]]:
    """Rows; `ratio` is how many times as many messages rmqtool has a second."""
    from rmqtool.messagestore.bench.engines import measured, missing

    for size in sizes:
        ours: dict[str, float] = {}
        for engine in engines:
            why = missing(engine, jars)
            if why is not None:
                left_out[engine] = why
                continue
            place = root / f"{engine}-{size}"
            figures = 0
            try:
                for one in measured(place, engine, works, size, number, jars=jars):
                    figures += 1
                    if engine == "rmqtool":
                        ours[one.work] = one.per_second
                    yield _row(one, ours.get(one.work))
            except StoreIOError as error:
                if engine == "rmqtool":
                    raise
                left_out[engine] = str(error)
            shutil.rmtree(place, ignore_errors=True)
            if not figures and engine not in left_out:
                left_out[engine] = f"it does nothing of {', '.join(works)}"


def _row(one: Bench, ours: float | None) -> dict[str, Any]:
    rounded = {"seconds": round(one.seconds, 6), "per_second": round(one.per_second)}
    ratio = None if ours is None else round(ours / one.per_second, 2)
    return {"type": "bench", **asdict(one), **rounded, "ratio": ratio}


def _some(option: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    for one in given or ():
        if one not in known:
            raise UsageError(f"{option} {one}: must be one of: {', '.join(known)}")
    return [one for one in known if given is None or one in given]


@contextmanager
def _directory(path: str | None) -> Iterator[Path]:
    """A directory of its own, which goes in the end."""
    from rmqtool.store.trust import refuse_foreign_temporary

    if path is not None and not Path(path).is_dir():
        raise UsageError(f"{path} is not a directory")
    refuse_foreign_temporary(path)
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-", dir=path) as made:
        yield Path(made)
