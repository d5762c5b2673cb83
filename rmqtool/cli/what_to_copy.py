"""`rmqtool info --what-to-copy`: which files doctor needs elsewhere, and the list that goes with them."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.file_beside import file_beside
from rmqtool.errors import ExitCode, UnfitStoreError, UsageError

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.output.export.target import Target
    from rmqtool.recovery.what_to_copy import WhatToCopy
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.what-to-copy/1"
KEYS = ("path", "kind", "size", "disk_bytes", "copy", "why")


@dataclass(frozen=True)
class CopyOptions:
    """What is asked about a copy."""

    what_to_copy: Annotated[
        bool,
        typer.Option(
            "--what-to-copy", help="Which files doctor needs elsewhere, on a machine without this store."
        ),
    ] = False
    print0: Annotated[
        bool,
        typer.Option(
            "--print0",
            help="With --what-to-copy: only the paths, each followed by a NUL, for tar and rsync.",
        ),
    ] = False
    manifest: Annotated[
        str | None,
        typer.Option(
            "--manifest",
            metavar="FILE",
            help="With --what-to-copy: write the list of all files, which goes into the copy as "
            "rmqtool-manifest.",
            show_default=False,
        ),
    ] = None


def show_what_to_copy(context: Context, store: Store, options: CopyOptions) -> ExitCode:
    """Lists the files; writes the list that a copy of them needs to say what it lacks."""
    from rmqtool.cli.left_out import unseen
    from rmqtool.recovery.what_to_copy import WhatToCopy
    from rmqtool.store.coverage import coverage
    from rmqtool.store.required import require_root

    if options.print0 and context.format != "table":
        raise UsageError("--print0 and --format cannot be combined")
    require_root(store)
    found = WhatToCopy(store)
    left = unseen(store, context)
    if left and options.manifest is not None:
        raise UnfitStoreError(
            f"{left[0]['path']}: {left[0]['error']}: a list of all files is not made without what lies there"
        )
    target = (
        None
        if options.manifest is None
        else file_beside(options.manifest, [store], "--manifest", force=False)
    )
    if target is not None:
        _write(target, store)
    if options.print0:
        for one in found.copied():
            context.out.write(os.fsencode(one.path) + b"\0")
        context.out.flush()
    elif context.format == "table":
        _page(context, found)
    else:
        with context.rows(SCHEMA, (), csv_columns=KEYS) as rows:
            rows.write_rows(found.rows())
            rows.finish(found.summary() | coverage(left))
    return ExitCode.INCOMPLETE if left else ExitCode.OK


def _write(target: Target, store: Store) -> None:
    from rmqtool.output.export.target import writing
    from rmqtool.store.partial import listing_of

    with writing(target.part), open(target.open_part(fresh=True), "wb") as file:
        file.writelines(listing_of(store.files))
    target.publish()


def _page(context: Context, found: WhatToCopy) -> None:
    """Sums by kind, and the commands that make the copy."""
    from rmqtool.output.sizes import human_bytes
    from rmqtool.output.tablerows import Column
    from rmqtool.store.partial import NAME

    why = {row["kind"]: row["why"] for row in found.rows() if row["why"]}
    page = context.page()
    columns = [
        Column("kind"),
        Column("files", right=True),
        Column("size", right=True, show=human_bytes),
        Column("disk_bytes", "on disk", right=True, show=human_bytes),
    ]
    for copied, title in ((True, "Copy"), (False, "Leave out")):
        sums = [(kind, one) for (kind, taken), one in sorted(found.sums.items()) if taken is copied]
        if sums:
            page.heading(title)
            further = [] if copied else [Column("why")]
            page.table(
                [*columns, *further],
                [{"kind": kind, **asdict(one), "why": why.get(kind)} for kind, one in sums],
            )
    both = found.summary()
    page.line("")
    size, left = human_bytes(both["disk_bytes"]), human_bytes(both["left_out_disk_bytes"])
    page.words(
        f"The copy has {size}; {left} stay here. With {NAME} in its root a copy says what it lacks, and no "
        "command calls it safe."
        if both["left_out_files"]
        else f"A start may read the whole log: the copy is one of the whole store, {size}."
    )
    place = shlex.quote(str(found.store.root))
    page.heading("Do next")
    page.command(
        f"rmqtool info {place} --what-to-copy --print0 --manifest {NAME} | "
        f'tar -czSf copy.tar.gz -C {place} --null -T - -C "$PWD" {NAME}'
    )
    page.words("makes the archive; unpack it elsewhere, and there:", "      ")
    page.command("rmqtool doctor .")
    page.close()
