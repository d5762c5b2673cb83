"""`rmqtool doctor`: may this broker be started, and what would it do?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError
from rmqtool.output.sizes import human_bytes

if TYPE_CHECKING:
    from rmqtool.recovery.outcome import Outcome, StartPlan
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.doctor/1"


@verb(
    examples=[
        "rmqtool doctor /data/store",
        "rmqtool doctor /data/store --as-version 5.3.3 --store-config broker.conf",
        "rmqtool doctor /data/store --json | jq .safe_to_start",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """May this broker be started, and what would it do?

    Goes through the start of a broker of the given release, or of every release that may have written the
    store, without changing a byte: where recovery begins and stops, what it deletes, the bounds of every
    queue afterwards, what is lost. Exit 0 when a start is safe, 1 when it is not, 3 when that is not certain.
    """
    context = Context(output)
    if context.format not in {"table", "json"}:
        raise UsageError(f"doctor prints one document: --format {context.format} is for listings")
    opened = open_store(context, path, store)
    outcomes = _outcomes(context, opened, read, version)
    safe = _verdict(outcomes)
    if context.format == "json":
        context.document(SCHEMA, _document(outcomes, safe, given=version.as_version is not None))
    else:
        from rmqtool.output.start_document import write_start_page

        write_start_page(context.page(), outcomes, safe=safe)
    return {True: ExitCode.OK, False: ExitCode.DAMAGE, None: ExitCode.INCOMPLETE}[safe]


def _outcomes(context: Context, opened: Store, read: ReadOptions, version: VersionOptions) -> list[Outcome]:
    """One for each behaviour that the releases in question show, the last release first."""
    from rmqtool.recovery.foretell import foretell
    from rmqtool.recovery.reading import Reading
    from rmqtool.recovery.settings import settings_of
    from rmqtool.recovery.traits import behaviours
    from rmqtool.scan.engine import choose_kernels
    from rmqtool.scan.log import data_bytes
    from rmqtool.store.access import Access
    from rmqtool.store.live import is_live
    from rmqtool.store.throttle import RateLimit

    releases = [version.as_version] if version.as_version else list(behaviours(opened.release.releases))
    settings = settings_of(opened)
    kernels = choose_kernels(data_bytes(opened.segments))
    total = sum(one.size for one in opened.segments) * len(releases)

    with context.progress("reading", total) as progress:
        limit = RateLimit(read.bytes_per_second) if read.bytes_per_second else None
        access = Access("pread", limit, drop_behind=is_live(opened))
        reading = Reading(kernels, access, read.job_count, progress.advance)
        return [
            foretell(opened, release, settings, reading=reading, on_plan=partial(_tell, context, release))
            for release in reversed(releases)
        ]


def _tell(context: Context, release: str, plan: StartPlan) -> None:
    where = "no commit log" if plan.start_segment is None else f"segment {plan.start_segment}"
    most = human_bytes(plan.bytes_to_scan)
    context.talk.note(f"{release}: {plan.mode} recovery from {where}, at most {most} to scan")


def _verdict(outcomes: list[Outcome]) -> bool | None:
    """Safe only if every start is."""
    verdicts = [one.safe_to_start for one in outcomes]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _document(outcomes: list[Outcome], safe: bool | None, *, given: bool) -> dict[str, Any]:
    from rmqtool.output.start_document import start_document

    return {
        **start_document(outcomes[0]),
        "version_source": "given" if given else "inferred",
        "versions_considered": [one.version for one in outcomes],
        "safe_to_start": safe,
        "complete": all(one.complete for one in outcomes),
    }
