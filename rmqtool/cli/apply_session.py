"""From a change request to its end: planned, printed, saved, and with --apply carried out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.cli.changing import quarantine_of
from rmqtool.cli.plan_page import Outcome, show_plan
from rmqtool.errors import ExitCode, UsageError
from rmqtool.output.sizes import human_bytes
from rmqtool.repair.apply_to_empty_dir import apply_to_empty_dir
from rmqtool.repair.backup import backup_needs
from rmqtool.repair.disk import Disk
from rmqtool.repair.in_place import (
    apply_in_place,
    check_backup,
    check_backup_place,
    how_it_stands,
    refuse_links_out,
)
from rmqtool.repair.interrupted import bring_back, refuse_if_interrupted
from rmqtool.repair.places import lies_in
from rmqtool.repair.plan import Action
from rmqtool.repair.quarantine import check_beside
from rmqtool.repair.room import written_bytes
from rmqtool.repair.saved import check_fits, check_same, digested, load_plan, save_plan
from rmqtool.repair.to_copy import apply_to_copy, check_output, prepare_copy
from rmqtool.repair.workplace import work_place
from rmqtool.repair.writeback import begin_writeback
from rmqtool.store.holding import acquire_store_lock, refuse_if_held
from rmqtool.store.modes import only_for, readers_of
from rmqtool.store.names import escape_name
from rmqtool.store.required import require_root
from rmqtool.store.unseen import refuse_unseen

if TYPE_CHECKING:
    from rmqtool.cli.changing import ChangeOptions, ChangeRequest
    from rmqtool.cli.context import Context
    from rmqtool.repair.plan import Planned
    from rmqtool.repair.to_copy import CopyPlan
    from rmqtool.store.holding import Held
    from rmqtool.store.layout import Store


def apply_session(context: Context, request: ChangeRequest, options: ChangeOptions) -> ExitCode:
    """Plans, prints and, with --apply, does it.

    Returns 0 when nothing is to do or all was done, 1 when a plan with changes was printed, was not carried
    out as the check of its result found problems, or was and leaves something (`Plan.leaves_harm`). Raises
    `UsageError`, `LockedError` (exit 5), `PlanRefusedError` (1), `NewerFormatError` (6), `StoreIOError` (4).
    """
    options.check()
    store = request.open()
    refuse_unseen(store, "no plan is made without it")
    only_for(readers_of(store))
    if not (request.alone and options.output is not None):
        require_root(store)
    _check_targets(store, request, options)
    target = (options.output or options.backup) if options.apply else None
    with work_place(target, store.root) as work:
        for path in work.removed:
            context.console.note(f"{escape_name(path)} was left by a command that was killed: removed")
        if options.in_place and options.apply:
            with acquire_store_lock(store.root) as held:
                work.adopt_lock(held)
                reported = bring_back(
                    store.root, str(options.backup), held, Disk(), follow_links=options.follow_links
                )
                if reported is not None:
                    context.console.note(reported)
                    store = request.open()
                check_backup(store, str(options.backup))
                return _run(context, request, options, store, work.directory, held)
        refuse_if_interrupted(store.root)
        refuse_if_held(store.root)
        if options.in_place:
            check_backup(store, str(options.backup))
        return _run(context, request, options, store, work.directory, None)


def _check_targets(store: Store, request: ChangeRequest, options: ChangeOptions) -> None:
    """Refuses what can be known to fail before anything is read."""
    if options.backup is not None:
        check_backup_place(store, options.backup)
    if options.output is not None:
        check_output(store, options.output)
        if request.keeps_evidence:
            check_beside(store, quarantine_of(options.output), "the directory beside --output")
    if options.save_plan is not None:
        shown = escape_name(options.save_plan)
        if lies_in(options.save_plan, store):
            raise UsageError(f"--save-plan {shown}: lies inside the store")
        if os.path.lexists(options.save_plan):
            raise UsageError(f"--save-plan {shown}: exists")
        if not os.path.isdir(os.path.dirname(os.path.abspath(options.save_plan))):
            raise UsageError(f"--save-plan {shown}: there is no such directory")


def _run(
    context: Context,
    request: ChangeRequest,
    options: ChangeOptions,
    store: Store,
    work: str,
    held: Held | None,
) -> ExitCode:
    planned = _plan(request, options, store, work)
    if options.in_place and not options.follow_links:
        refuse_links_out(store, planned)
    if options.apply:
        begin_writeback(planned.edits)
    if request.check is not None and planned.edits:
        planned = planned.with_check(request.check(store, planned))
    if options.save_plan is not None:
        total = sum(one.size for one in planned.plan.inputs)
        with context.progress("digesting", total) as progress:
            save_plan(store, planned, options.save_plan, progress.advance)
    if not options.apply:
        show_plan(context, request, options, planned, _foreseen(request, store, planned, options))
        return ExitCode.DAMAGE if planned.edits or planned.plan.leaves_harm else ExitCode.OK
    if not _believed(context, planned, options):
        show_plan(context, request, options, planned, Outcome())
        return ExitCode.DAMAGE
    outcome = (
        _in_place(context, options, store, planned, held)
        if held is not None
        else _to_copy(context, request, options, store, planned)
    )
    show_plan(context, request, options, planned, outcome)
    if outcome.left_out:
        return ExitCode.INCOMPLETE
    return ExitCode.DAMAGE if planned.plan.leaves_harm else ExitCode.OK


def _believed(context: Context, planned: Planned, options: ChangeOptions) -> bool:
    """Whether the check of the result lets the plan be carried out."""
    checked = planned.plan.checked
    if checked is None or checked.proven:
        return True
    count = len(checked.problems) + checked.more
    problems = f"the check of the result found {count} {'problem' if count == 1 else 'problems'}"
    if options.apply_unproven:
        context.console.warn(f"{problems}: applied anyway (--apply-unproven)")
        return True
    context.console.warn(f"{problems}: nothing was changed (--apply-unproven applies the plan anyway)")
    return False


def _plan(request: ChangeRequest, options: ChangeOptions, store: Store, work: str) -> Planned:
    if options.plan is None:
        return request.plan(store, request.parameters, work)
    saved = load_plan(options.plan)
    check_fits(saved, store, request.command, options.plan)
    planned = digested(request.plan(store, request.chosen(saved.parameters), work))
    check_same(saved, planned, options.plan)
    return planned


def _foreseen(request: ChangeRequest, store: Store, planned: Planned, options: ChangeOptions) -> Outcome:
    if options.output is not None and request.alone:
        return Outcome(needed=written_bytes(planned.edits))
    if options.output is not None:
        copy = prepare_copy(store, planned, options.output, follow_links=options.follow_links)
        return Outcome(needed=copy.needed, shares=copy.shares, left_out=_left_out(copy))
    if options.in_place:
        return Outcome(needed=backup_needs(store, planned, str(options.backup)).total)
    return Outcome()


def _to_copy(
    context: Context, request: ChangeRequest, options: ChangeOptions, store: Store, planned: Planned
) -> Outcome:
    output = str(options.output)
    if request.alone:
        with context.progress("writing", written_bytes(planned.edits)) as progress:
            apply_to_empty_dir(store, planned, output, advance=progress.advance)
        return Outcome(applied=True, needed=written_bytes(planned.edits), output=os.path.abspath(output))
    copy = prepare_copy(store, planned, output, follow_links=options.follow_links)
    shared = " beside blocks shared with the store" if copy.shares else ""
    context.console.note(f"the copy in {output} takes {human_bytes(copy.needed)}{shared}")
    for path in copy.tree.skipped:
        context.console.warn(f"{path} is not a file and not copied")
    for path in _left_out(copy):
        context.console.warn(f"{path} leads out of the store by a link and is not copied (--follow-links)")
    _warn_of_owners(context, store)
    quarantine = quarantine_of(output) if request.keeps_evidence else None
    with context.progress("copying", copy.tree.data_bytes) as progress:
        apply_to_copy(store, planned, copy, quarantine=quarantine, advance=progress.advance)
    kept = quarantine if quarantine is not None and os.path.isdir(quarantine) else None
    return Outcome(
        applied=True,
        needed=copy.needed,
        shares=copy.shares,
        output=copy.target,
        quarantine=kept,
        left_out=_left_out(copy),
    )


def _left_out(copy: CopyPlan) -> tuple[str, ...]:
    return tuple(map(escape_name, copy.tree.left_out))


def _warn_of_owners(context: Context, store: Store) -> None:
    user = os.geteuid()
    if user != 0 and os.stat(store.root).st_uid != user:
        context.console.warn("the files get this user for their owner: only root can keep that of the store")


def _warn_of_names(context: Context, store: Store, planned: Planned) -> None:
    """A snapshot made of hard links is changed with the file itself."""
    written = {one.change.path for one in planned.edits if one.change.action in {Action.WRITE, Action.RESIZE}}
    found = [one for one in store.files if one.display_path in written and os.stat(one.location).st_nlink > 1]
    for one in found[:1]:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        context.console.warn(
            f"{one.display_path}{more}: has further names (hard links), which change with it"
        )


def _in_place(
    context: Context, options: ChangeOptions, store: Store, planned: Planned, held: Held
) -> Outcome:
    if not planned.edits:
        return Outcome(applied=True)
    backup = os.path.abspath(str(options.backup))
    needs = backup_needs(store, planned, backup)
    _warn_of_owners(context, store)
    _warn_of_names(context, store, planned)
    context.console.note(f"the journal in {backup} takes {human_bytes(needs.total)}")
    with context.progress("writing", sum(one.change.length or 0 for one in planned.edits)) as progress:
        try:
            apply_in_place(
                store,
                planned,
                backup,
                held,
                follow_links=options.follow_links,
                advance=progress.advance,
            )
        except KeyboardInterrupt:
            context.console.warn(f"interrupted: {how_it_stands(store, backup)}")
            raise
    return Outcome(applied=True, needed=needs.total, journal=backup)
