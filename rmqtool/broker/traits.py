"""How RocketMQ's releases differ, as one table.

Each trait names a difference in `DefaultMessageStore#load`/`#start` and below; the rest of the room asks for
traits and never for versions. Releases before 4.9.0 are answered like 4.9.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rmqtool.errors import UsageError
from rmqtool.scan.multi import MultiDispatch
from rmqtool.store.releases import RELEASES, version_key


class NormalStart(StrEnum):
    """Where `CommitLog#recoverNormally` begins."""

    LAST_THREE = "last_three"
    """at the last file but two, without dispatching"""
    QUEUES = "queues"
    """at the last file that begins at or before what the queues know, dispatching what lies behind that"""


class ReputStart(StrEnum):
    """Where dispatching goes on once the store is loaded (`DefaultMessageStore#start`)."""

    QUEUES = "queues"
    """at the greatest end offset that any queue knows"""
    LOG_END = "log_end"
    CONFIRMED = "confirmed"
    """at the confirm offset, which is the log end unless duplication or controller mode is on"""


@dataclass(frozen=True, slots=True)
class Traits:
    """One behaviour of a start; fields are in the order in which a start meets them.

    since: the first release that behaves like this. Traits that no start shows (reading) are not compared.
    """

    since: str = field(compare=False)
    blank_tables: frozenset[str] = frozenset({"topics.json", "consumerOffset.json", "delayOffset.json"})
    """configuration files in which nothing but blanks counts as an empty table, not as unparsable (seen)"""
    listed_versions: frozenset[str] = frozenset({"topics.json"})
    """configuration files that load although `dataVersion` opens with a bracket (seen)"""
    tables_of_5: bool = False
    """what 5.0 added to configuration tables is read, so that a wrong value there refuses them, too (seen)"""
    skips_directories: bool = False
    """a directory among mapped files is passed over, not refused (`MappedFileQueue#doLoad`)"""
    tables_in_database: bool = False
    """`configManagerVersion` is known (`ConfigManagerV2`)"""
    pop_database: bool = False
    """what was popped and not acknowledged may lie in `kvStore/`, without which there is no start then
    (`PopConsumerService#start`; with `popConsumerKVServiceInit`)"""
    deletes_empty_last_file: bool = False
    """a last file of length 0 is deleted, not refused (`MappedFileQueue#doLoad`)"""
    typed_queues: bool = False
    """`batchconsumequeue` exists, and a queue of the wrong type refuses (`#queueTypeShouldBe`)"""
    index_failure_refuses: bool = False
    """an index file that cannot be opened fails the load (`DefaultMessageStore#load`)"""
    confirm_from_checkpoint: bool = False
    """`confirmPhyOffset` of the checkpoint is taken over before recovery"""
    normal_start: NormalStart = NormalStart.LAST_THREE
    long_topics: bool = False
    """records of version 2 are read"""
    record_must_fit: bool = False
    """a record longer than the rest of its file fails at once; without this the buffer for it is allocated
    (`CommitLog#checkMessageAndReturnSize`)"""
    checks_duplication: bool = False
    """`duplicationEnable` demands DUP_INFO in every record with properties"""
    late_delay_levels: bool = field(default=False, compare=False)
    """delay levels are parsed behind recovery (`ScheduleMessageService#load`): what it makes of delayed
    messages has the hash of their tags, not the time of delivery"""
    property_crc: bool = False
    """`forceVerifyPropCRC` is known"""
    property_crc_zero: bool = False
    """a property CRC of 0 is accepted"""
    inner_batches: bool = False
    """INNER_NUM and INNER_BASE are parsed, a bad number fails the record"""
    confirmed_by_end: bool = False
    """with duplication a record is dispatched when it *ends* at or below the confirm offset"""
    confirms_flushed: bool = False
    """with SYNC_FLUSH the confirm offset is what was flushed, which is nothing before recovery ends"""
    min_offset_by_search: bool = False
    """`ConsumeQueue#correctMinOffset` looks at the last unit, then searches; it may throw"""
    reput_start: ReputStart = ReputStart.QUEUES
    recheck_reput: bool = False
    """`recheckReputOffsetFromCq` is known"""
    multi_dispatch: MultiDispatch = MultiDispatch.NONE
    timer_wheel: bool = False
    """a file `timerwheel` of another length than its own ends the start (`TimerWheel`)"""
    compaction: bool = False
    """logs of compaction topics are loaded (`CompactionStore#load`)"""
    abort_is_written: bool = False
    """`abort` gets content, so that a directory of that name fails the start (`#createTempFile`)"""
    overflow_to_zero: bool = field(default=False, compare=False)
    """an offset beyond the end of a queue that begins at 0 goes back to 0 (`#nextOffsetCorrection`)"""
    pull_counts_batches: bool = field(default=False, compare=False)
    """a pull counts the messages in batches, and never exceeds 128 MiB (`#isTheBatchFull`)"""
    time_boundaries: bool = field(default=False, compare=False)
    """a search by time knows boundaries and chooses files by the times of their records; before, by their
    modification times, and the nearest message in time is the answer"""
    time_in_range: bool = field(default=False, compare=False)
    """its answer lies between the queue's minimum and maximum"""
    client_checks_magic: bool = field(default=False, compare=False)
    """`MessageDecoder#decode` refuses other magic codes, and knows long topics"""


def _table() -> tuple[Traits, ...]:
    v490 = Traits("4.9.0", overflow_to_zero=True)
    v492 = replace(v490, since="4.9.2", late_delay_levels=True)
    v493 = replace(v492, since="4.9.3", multi_dispatch=MultiDispatch.ALL_TOPICS)
    v494 = replace(v493, since="4.9.4", overflow_to_zero=False)
    v500 = replace(
        v494,
        since="5.0.0",
        blank_tables=frozenset(
            {"topics.json", "subscriptionGroup.json", "delayOffset.json", "topicQueueMapping.json"}
        ),
        listed_versions=frozenset({"topics.json", "subscriptionGroup.json"}),
        tables_of_5=True,
        late_delay_levels=False,
        typed_queues=True,
        checks_duplication=True,
        inner_batches=True,
        min_offset_by_search=True,
        reput_start=ReputStart.LOG_END,
        recheck_reput=True,
        timer_wheel=True,
        abort_is_written=True,
        pull_counts_batches=True,
        time_in_range=True,
        client_checks_magic=True,
    )
    v510 = replace(
        v500,
        since="5.1.0",
        skips_directories=True,
        index_failure_refuses=True,
        compaction=True,
        long_topics=True,
        reput_start=ReputStart.CONFIRMED,
    )
    v511 = replace(
        v510, since="5.1.1", confirm_from_checkpoint=True, confirmed_by_end=True, time_boundaries=True
    )
    v513 = replace(v511, since="5.1.3", deletes_empty_last_file=True)
    v520 = replace(v513, since="5.2.0", property_crc=True, multi_dispatch=MultiDispatch.USER_TOPICS)
    v530 = replace(v520, since="5.3.0", confirms_flushed=True)
    v532 = replace(
        v530,
        since="5.3.2",
        normal_start=NormalStart.QUEUES,
        record_must_fit=True,
        property_crc_zero=True,
        pop_database=True,
        tables_in_database=True,
    )
    return v490, v492, v493, v494, v500, v510, v511, v513, v520, v530, v532


TABLE = _table()
"""ascending by `since`"""


def traits_of(release: str) -> Traits:
    """The behaviour of a release; a later one than the last known is taken for that.

    Raises `UsageError` for what is not a version.
    """
    try:
        wanted = version_key(release)
    except ValueError:
        raise UsageError(f"{release} is not a release; known are {RELEASES[0]} to {RELEASES[-1]}") from None
    return next((one for one in reversed(TABLE) if version_key(one.since) <= wanted), TABLE[0])


class ObservedTraits:
    """The traits of a release, and which of them a start asks for: releases that agree in these start alike.

    To be asked late helps: what a start never comes to is no difference.
    """

    def __init__(self, release: str) -> None:
        self._traits = traits_of(release)
        self._asked: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = self._asked[name] = getattr(self._traits, name)
        return value

    def are_those_of(self, release: str) -> bool:
        """Whether this release would have given the same answers."""
        traits = traits_of(release)
        return all(getattr(traits, name) == value for name, value in list(self._asked.items()))

    def are_alike(self, one: str, other: str) -> bool:
        """Whether two releases would have given the same answers, whichever."""
        first, second = traits_of(one), traits_of(other)
        return all(getattr(first, name) == getattr(second, name) for name in list(self._asked))


def is_known(release: str) -> bool:
    """Whether the release is one of those that are known; another one may start in another way."""
    return version_key(release) in {version_key(one) for one in RELEASES}


def behaviours(releases: frozenset[str]) -> dict[str, Traits]:
    """One release for each behaviour among `releases` (the highest that shows it), ascending."""
    found: dict[Traits, str] = {}
    for release in sorted(releases, key=version_key):
        found[traits_of(release)] = release
    return {release: traits_of(release) for release in found.values()}
