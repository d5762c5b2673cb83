"""`rmqtool recover`: the store as it should be after a stop."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.repair.plan import Checked, Planned
    from rmqtool.store.layout import Store


class Policy(StrEnum):
    """What becomes of damage."""

    KEEP = "keep"
    BROKER = "broker"


class DamagedBody(StrEnum):
    """What becomes of a record whose body fails its CRC."""

    TOMBSTONE = "tombstone"
    KEEP = "keep"


_KEEPS: dict[str, Any] = {"damaged_body": "tombstone", "donors": []}
_OPTIONS = {"damaged_body": "damaged-body", "donors": "donor"}


@verb(
    examples=[
        "rmqtool recover /data/store",
        "rmqtool recover /data/store --output /data/store.repaired --apply",
        "rmqtool recover /data/store --in-place --backup /backup/undo --apply",
        "rmqtool recover /data/store --policy broker --output /data/store.as-broker --apply",
        "rmqtool recover /data/store --donor /replica/store --damaged-body keep",
        "rmqtool recover /data/store --json | jq '.summary.lost'",
    ],
)
def command(
    path: StoreArgument = None,
    policy: Annotated[
        Policy | None,
        typer.Option(
            "--policy",
            show_default=False,
            help="keep, the default: every intact record survives, also behind damage. broker: what a "
            "broker would leave, with all that it would cut or delete kept beside.",
        ),
    ] = None,
    damaged_body: Annotated[
        DamagedBody | None,
        typer.Option(
            "--damaged-body",
            show_default=False,
            help="A record whose body fails its CRC becomes a tombstone, the default, or keeps its bytes "
            "under a CRC that fits.",
        ),
    ] = None,
    donor: Annotated[
        list[str] | None,
        typer.Option(
            "--donor",
            metavar="STORE",
            help="A replica that is asked first for every damaged range; repeatable.",
            show_default=False,
        ),
    ] = None,
    *,
    change: ChangeOptions,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Repair a store: every intact record is kept, also after damage, and every queue offset.

    Damaged records become tombstones of the same length and place, so that queue offsets and physical
    offsets stay what they were; torn tails are cut, missing segments bridged, consume queues and index
    brought in step, and the next start of a broker is a clean one that deletes nothing. With --policy broker
    the files become what a broker would make of them, and what it would destroy is kept.

    Prints what it would do and what cannot be saved. With --apply it is done: to a copy (--output), or to
    the store itself (--in-place --backup), which rmqtool undo takes back. The exit code is 1 even then where
    messages may stand at other queue offsets than before, or a start would still do harm: the plan says so.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.store.names import escape_name

    context = Context(output)
    parameters = {
        "policy": (policy or Policy.KEEP).value,
        "release": version.release,
        "damaged_body": (damaged_body or DamagedBody.TOMBSTONE).value,
        "donors": [escape_name(one) for one in donor or ()],
    }
    typed = {"policy": policy, "release": version.release, "damaged_body": damaged_body, "donors": donor}

    def plan(opened: Store, chosen: dict[str, Any], work: str) -> Planned:
        return plan_recovery(context, opened, chosen, work, read)

    request = ChangeRequest(
        command="recover",
        open=lambda: open_store(context, path, store, changing=True),
        parameters=parameters,
        given=[name for name, value in typed.items() if value],
        plan=plan,
        keeps_evidence=True,
        check=lambda opened, planned: _check(context, opened, planned, read),
    )
    return apply_session(context, request, change)


def _check(context: Context, opened: Store, planned: Planned, read: ReadOptions) -> Checked:
    from rmqtool.cli.checking import check_with
    from rmqtool.repair.prove.checks import check_broker, check_keep

    if planned.plan.parameters["policy"] == Policy.BROKER:
        return check_with(check_broker, context, opened, planned, read)
    return check_with(check_keep, context, opened, planned, read)


def plan_recovery(
    context: Context, opened: Store, chosen: dict[str, Any], work: str, read: ReadOptions
) -> Planned:
    """The plan of the parameters `chosen`, as a saved plan has them. work: a directory for what is made."""
    from rmqtool.repair.keep.planner import KeepOptions, keep
    from rmqtool.scan.options import ReadOptions as LogOptions
    from rmqtool.store.access import Access
    from rmqtool.store.names import unescape_name

    release = chosen["release"] or opened.release.last
    if chosen["policy"] == Policy.BROKER:
        return _as_broker(context, opened, release, chosen, read)
    with context.progress("reading", 0) as progress:
        access = Access.of(read.bytes_per_second, careful=True, live=False)
        options = KeepOptions(
            release=release,
            named_release=chosen["release"],
            keep_bodies=chosen["damaged_body"] == DamagedBody.KEEP,
            donors=tuple(map(unescape_name, chosen["donors"])),
            reading=LogOptions(access, read.job_count, advance=progress.advance, expect=progress.expect_more),
        )
        return keep(opened, options, work).planned


def _as_broker(
    context: Context, opened: Store, release: str, chosen: dict[str, Any], read: ReadOptions
) -> Planned:
    from rmqtool.broker.settings import settings_of
    from rmqtool.repair.broker.policy import plan_broker_policy

    given = [name for name, value in _KEEPS.items() if chosen[name] != value]
    if given:
        raise UsageError(f"--policy broker leaves damage as a broker does: no --{_OPTIONS[given[0]]}")
    with context.progress("reading", 0) as progress:
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more, live=False)
        return plan_broker_policy(opened, release, settings_of(opened), reading, chosen)
