"""Options of `rebuild` and `pipeline rebuild`: what is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.parse import named, parse_int
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from rmqtool.repair.rebuild_options import RebuildOptions


@dataclass(frozen=True)
class SelectOptions:
    """What is built."""

    what: Annotated[
        str | None,
        typer.Option(
            "--what",
            metavar="KINDS",
            help="cq (consume queues of all kinds), index, or both: cq,index, the default; with --topic or "
            "--queue: cq.",
            show_default=False,
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="GLOB", help="Queues of these topics; repeatable.", show_default=False
        ),
    ] = None
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar="N",
            help="Queues with this number, or * for all; repeatable.",
            show_default=False,
        ),
    ] = None
    keep_expired: Annotated[
        bool,
        typer.Option(
            "--keep-expired",
            help="Keep older consume queue entries, whose records have expired, from the old files; the "
            "index keeps none.",
        ),
    ] = False
    deleted_topics: Annotated[
        bool, typer.Option("--deleted-topics", help="Build queues of topics that topics.json has not, too.")
    ] = False
    restore_topics: Annotated[
        bool,
        typer.Option(
            "--restore-topics",
            help="Bring back deleted topics: their queues, and an entry in topics.json as a guess.",
        ),
    ] = False

    def build(self, release: str, *, complete: bool, tz: str) -> RebuildOptions:
        """As data. release: whose files. complete: all of them, not what differs. tz: names index files."""
        from rmqtool.repair.rebuild_options import RebuildOptions

        return RebuildOptions(
            release=release,
            what=_kinds(self.what, narrowed=bool(self.topic or self.queue)),
            topic=tuple(self.topic or ()),
            queue=_numbers(self.queue),
            keep_expired=self.keep_expired,
            deleted_topics=self.deleted_topics,
            complete=complete,
            tz=tz,
            restore_topics=self.restore_topics,
        )


def _kinds(text: str | None, *, narrowed: bool) -> tuple[str, ...]:
    from rmqtool.repair.rebuild_options import WHAT

    if text is None:
        return WHAT[:1] if narrowed else WHAT
    given = {part.strip() for part in text.split(",")}
    if not given <= set(WHAT):
        raise UsageError(f"--what: {text} is not cq, index or cq,index")
    if narrowed and "cq" not in given:
        raise UsageError("--topic and --queue choose queues; the index is always of all messages")
    return tuple(kind for kind in WHAT if kind in given)


def _numbers(given: list[str] | None) -> tuple[int, ...]:
    if given is None or "*" in given:
        return ()
    with named("--queue"):
        return tuple(sorted({parse_int(one, minimum=0) for one in given}))
