"""Well-formed records that a release or a setting refuses all the same, found in columns.

What a column cannot decide is asked of `record_check.check_record`; such records are rare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats import properties as props
from formats.commitlog import MESSAGE_MAGIC_CODE_V2, SysFlag
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.columns import of_topic, properties_match
from rmqtool.broker.record_check import check_record, lacks_number
from rmqtool.scan.fields import DIGITS_OF, CrcState, Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.record_check import Rules, Verdict
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import ByteSource

    Flags = npt.NDArray[np.bool_]

_DUP_INFO = r"(?:^|\x02)DUP_INFO\x01[^_\x02]*_[^_\x02]+_*(?:\x02|$)"
_NUMBER = {
    head[:-1].decode(): rf"(?:^|\x02){head.decode()}[+-]?[0-9]{{1,{most}}}(?:\x02|$)"
    for head, most in DIGITS_OF.items()
}
"""by property, what is a number for certain"""


def first_refused(
    run: Records, source: ByteSource, limit: int, rules: Rules, kernels: Kernels
) -> tuple[int, Verdict] | None:
    """(index, verdict) of the first record of a run that the broker does not take."""
    for index in np.flatnonzero(_suspicious(run, rules, kernels)).tolist():
        verdict = check_record(source, int(run.rows[index, Field.POSITION]), limit, rules)
        if verdict.reason is not None:
            return index, verdict
    return None


def _suspicious(run: Records, rules: Rules, kernels: Kernels) -> Flags:
    rows = run.rows
    found: Flags = np.zeros(len(rows), np.bool_)
    wide = rows[:, Field.MAGIC] == MESSAGE_MAGIC_CODE_V2
    if wide.any() and not rules.traits.long_topics:
        found |= wide
    if rules.check_body:
        found |= rows[:, Field.CRC_STATE] == CrcState.BAD
    if rules.check_property_crc:
        found[:] = True
    if rules.check_duplication:
        found |= (rows[:, Field.PROPERTIES_LENGTH] > 0) & ~properties_match(
            run, kernels, found | True, _DUP_INFO, props.DUP_INFO
        )
    return found | _maybe_without_number(run, kernels, inner_batches=rules.traits.inner_batches)


def without_number(run: Records, kernels: Kernels) -> Flags:
    """Which records have a property that is no number, at which brokers of some release end their log."""
    found = _maybe_without_number(run, kernels, inner_batches=True)
    for index in np.flatnonzero(found).tolist():
        found[index] = is_without_number(run, index)
    return found


def is_without_number(run: Records, index: int) -> bool:
    """As `without_number`, one record of a run."""
    batch = bool(run.rows[index, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH))
    topic = _field(run, index, Field.TOPIC_POSITION, Field.TOPIC_LENGTH)
    known = props.decode(_field(run, index, Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH))
    return lacks_number(topic, known, inner_batches=batch)


def _field(run: Records, index: int, position: Field, length: Field) -> bytes:
    start = int(run.rows[index, position]) - run.origin
    return run.window[start : start + max(int(run.rows[index, length]), 0)].tobytes()


def _maybe_without_number(run: Records, kernels: Kernels, *, inner_batches: bool) -> Flags:
    rows = run.rows
    found: Flags = np.zeros(len(rows), np.bool_)
    scheduled = of_topic(run, SCHEDULE_TOPIC)
    if scheduled.any():
        found |= scheduled & ~properties_match(run, kernels, scheduled, _NUMBER[props.DELAY], props.DELAY)
    batches = (rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH)) != 0
    if batches.any() and inner_batches:
        for name in (props.INNER_NUM, props.INNER_BASE):
            found |= batches & ~properties_match(run, kernels, batches, _NUMBER[name], name)
    return found
