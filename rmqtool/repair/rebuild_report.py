"""What a rebuild tells beside its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, worst
from rmqtool.store.coverage import Incomplete, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.build.log import LogAnomalies, Span
    from rmqtool.repair.rebuild import Rebuilt

_NAMED = 10


def summary_of(rebuilt: Rebuilt) -> dict[str, Any]:
    """Keys of the summary: counts, what was left out, and which bytes of the log gave no record."""
    built = rebuilt.queues
    rows = list(_not_covered(rebuilt.anomalies))
    reason = reason_of(rows)
    reported: dict[str, Any] = {
        "records": rebuilt.records,
        "queues": len(built),
        "units": sum(one.units for one in built.values()),
        "blank_units": sum(one.filled for one in built.values()),
        "misplaced_units": sum(one.misplaced for one in built.values()),
        "records_without_unit": sum(one.doubled for one in built.values()),
        "kept_units": rebuilt.kept,
        "index_items": rebuilt.index_items,
        "unchanged_files": rebuilt.unchanged,
        "bad_bodies": rebuilt.anomalies.bad_body_count,
        "queues_without_records": [
            {"topic": topic, "queue_id": queue_id} for topic, queue_id in rebuilt.left
        ],
        "deleted_topics": rebuilt.deleted,
        "complete": reason is None,
    }
    if reason is not None:
        reported |= {"incomplete_reason": reason.value, "not_covered": rows}
    return reported


def exit_code_of(rebuilt: Rebuilt) -> ExitCode:
    """3 when bytes could not be read, 1 when there was damage, whatever became of the plan."""
    anomalies = rebuilt.anomalies
    codes = [ExitCode.OK]
    if anomalies.unreadable:
        codes.append(ExitCode.INCOMPLETE)
    if anomalies.gaps or anomalies.bad_body_count:
        codes.append(ExitCode.DAMAGE)
    return worst(codes)


def warnings_of(rebuilt: Rebuilt) -> Iterator[str]:
    """One line for each thing that the log has and the files have not, or not as it was."""
    anomalies = rebuilt.anomalies
    if anomalies.lost_bytes:
        spans = [*anomalies.unreadable, *anomalies.gaps]
        where = ", ".join(f"{one.physical_offset} ({one.reason})" for one in spans[:_NAMED])
        more = f" and {len(spans) - _NAMED} more places" if len(spans) > _NAMED else ""
        yield f"{anomalies.lost_bytes} bytes of the log gave no record, from offset {where}{more}"
    if anomalies.bad_body_count:
        offsets = ", ".join(str(one.physical_offset) for one in anomalies.bad_bodies[:_NAMED])
        yield f"{anomalies.bad_body_count} records whose body fails its CRC were built like others: {offsets}"
    for one in anomalies.tails:
        yield f"{one.path}: {one.length} bytes behind the last record are {one.reason} and were not built"
    if rebuilt.elsewhere:
        yield f"{rebuilt.elsewhere} records state another offset; entries lead to where they lie"
    yield from _queue_warnings(rebuilt)
    for topic in rebuilt.deleted[:_NAMED]:
        yield (
            f"topic {topic} is not in topics.json: its queues were not built (--deleted-topics builds them, "
            "--restore-topics brings back the entry, too)"
        )
    if rebuilt.left:
        names = ", ".join(f"{topic}/{queue_id}" for topic, queue_id in rebuilt.left[:_NAMED])
        yield f"{len(rebuilt.left)} queues have no record in the log and stay as they are: {names}"


def _queue_warnings(rebuilt: Rebuilt) -> Iterator[str]:
    left = rebuilt.left_out
    if left.nameless:
        yield f"{left.nameless} records have a topic that names no directory, they got no consume queue entry"
    if left.unlisted:
        yield f"{left.unlisted} records name further queues but not their offsets, which got no entries"
    if left.numberless:
        yield f"{left.numberless} offsets of further queues are not numbers: a broker's dispatch stops there"
    for key, one in sorted(rebuilt.queues.items()):
        name = f"{key[0]}/{key[1]}"
        if one.misplaced:
            yield f"{name}: {one.misplaced} entries are not at their message's queue offset, as with a broker"
        if one.filled:
            yield f"{name}: {one.filled} blank entries stand for messages that the log has lost"
        if one.doubled:
            yield f"{name}: {one.doubled} records got no entry, their queue offset was taken"


def _not_covered(anomalies: LogAnomalies) -> Iterator[dict[str, Any]]:
    for spans, reason in ((anomalies.unreadable, Incomplete.UNREADABLE), (anomalies.gaps, Incomplete.DAMAGE)):
        for one in spans:
            yield _row(one, reason)


def _row(one: Span, reason: Incomplete) -> dict[str, Any]:
    return {
        "path": one.path,
        "position": one.position,
        "length": one.length,
        "physical_offset": one.physical_offset,
        "reason": reason.value,
        "error": one.reason,
    }
