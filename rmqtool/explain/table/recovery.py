"""What recovery of the commit log says at every start."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="recovery.magic-zero",
        severity="normal",
        lines=("found a illegal magic code 0x0",),
        meaning=(
            "The reader came to zeros. At the tail of the newest file that is the ordinary end of the "
            "data, printed at every start. Only in front of further records is it a hole, and then "
            "recovery stops there and deletes every later segment."
        ),
        look=(
            "Whether records follow: the last segment with records must be the one that recovery names "
            "in its 'end' line, and no 'destroy' or 'delete file' line for a segment with data may "
            "follow."
        ),
        next=("verify STORE",),
        incidents=("F01",),
        source=("CommitLog#checkMessageAndReturnSize",),
    ),
    Entry(
        id="recovery.magic-foreign",
        severity="problem",
        lines=("found a illegal magic code 0x{magic}",),
        meaning=(
            "At a place where a record should begin stand four bytes that are not a magic code. On a start "
            "recovery stops here, and later segments are deleted. Repeated by a running slave, its "
            "dispatch is stuck in the middle of a record, commonly after the master lost an unflushed "
            "tail."
        ),
        look=(
            "The bytes themselves: text means the reader is not at a record boundary, one flipped bit "
            "means damage of the medium or memory."
        ),
        next=("verify STORE",),
        incidents=("F01", "F03"),
        source=("CommitLog#checkMessageAndReturnSize",),
        derive="magic",
    ),
    Entry(
        id="recovery.body-crc",
        severity="problem",
        lines=("CRC check failed. bodyCRC={first_crc}, currentCRC={second_crc}",),
        meaning=(
            "The body of a record is not what its CRC says. Recovery stops at this record and every "
            "later segment is deleted; the file itself is only cut in memory. The two labels are "
            "exchanged in the source."
        ),
        look=(
            "The record (the offset stands in neighbouring lines) and what follows it. Copy the "
            "store before the next start."
        ),
        next=("verify STORE",),
        incidents=("F01", "F05"),
        source=("CommitLog#checkMessageAndReturnSize",),
        derive="crc",
    ),
    Entry(
        id="recovery.property-crc",
        severity="problem",
        lines=(
            (
                "CommitLog#checkAndDispatchMessage: failed to check message CRC, expected CRC={expected}, "
                "actual CRC={found}"
            ),
        ),
        meaning=(
            "The CRC over the whole record (property __CRC32#) does not fit: some byte of the record "
            "changed, not only of its body. Recovery stops here."
        ),
        look="The record and all behind it.",
        next=("verify STORE",),
        incidents=("F04", "F05"),
        source=("CommitLog#checkMessageAndReturnSize",),
        releases="5.1.4 and later",
    ),
    Entry(
        id="recovery.property-crc-absent",
        severity="problem",
        lines=("failed to check message CRC, not found CRC in properties",),
        meaning=(
            "forceVerifyPropCRC is on and the record has no __CRC32# property. Records that were "
            "written before enabledAppendPropCRC was switched on all look like that: recovery takes the "
            "first of them for the end of the log and cuts everything behind it."
        ),
        look=(
            "broker.conf: switch forceVerifyPropCRC off before the next start, unless the store was "
            "written with the property from its first record on."
        ),
        next=("verify STORE",),
        incidents=("F05",),
        source=("CommitLog#checkMessageAndReturnSize",),
        releases="5.1.4 and later",
    ),
    Entry(
        id="recovery.duplication-info",
        severity="problem",
        lines=("DupInfo in properties check failed. dupInfo={word}",),
        meaning=(
            "The broker runs with duplicationEnable and checks records for a property that ordinary "
            "records do not have. Recovery takes the first ordinary record for the end of the log: "
            "consume queues are cut away, the commit log is whole."
        ),
        look="The setting duplicationEnable; DLedger releases up to 5.2.0 fall into this by themselves.",
        next=("verify STORE",),
        incidents=("F23",),
        source=("CommitLog#checkMessageAndReturnSize",),
        releases="5.x",
    ),
    Entry(
        id="recovery.size-sum",
        severity="problem",
        lines=(
            (
                "[BUG]read total count not equals msg total size. totalSize={size}, readTotalCount={int}, "
                "bodyLen={}, topicLen={}, propertiesLength={}"
            ),
        ),
        meaning=(
            "The lengths inside a record do not add up to its total size: the record is torn or a "
            "length field is damaged. On a start recovery stops here; 5.x continues to a 'half message' "
            "line with the offset."
        ),
        look="The record: which of the lengths is absurd, and whether zeros begin inside it (a lost page).",
        next=("verify STORE",),
        incidents=("F04",),
        source=("CommitLog#checkMessageAndReturnSize",),
    ),
    Entry(
        id="recovery.undecodable",
        severity="problem",
        lines=("checkMessageAndReturnSize failed, may can not dispatch",),
        meaning=(
            "Decoding a record failed with an exception, because a length field in it is absurd. The "
            "record counts as unreadable: recovery stops there, and dispatch passes over the rest of "
            "the segment."
        ),
        look="The exception below the line; the record, whose offset stands in a neighbouring line.",
        next=("verify STORE",),
        incidents=("F04",),
        source=("CommitLog#checkMessageAndReturnSize",),
        releases="5.x",
    ),
    Entry(
        id="recovery.half-message",
        severity="problem",
        lines=("found a half message at {physical_offset}, it will be truncated",),
        meaning=(
            "Recovery stopped at this offset because the record there is damaged. Consume queues are "
            "cut back to it and every later segment is deleted. In the file itself the old bytes stay "
            "until they are overwritten."
        ),
        look=(
            "Whether intact records lie behind the offset: they are lost to the broker with this start. "
            "Save a copy of the store before anything else is written."
        ),
        next=("show STORE {physical_offset}", "verify STORE"),
        incidents=("F01",),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
        releases="5.1 and later",
    ),
    Entry(
        id="recovery.file-end",
        severity="normal",
        lines=("recover physics file end, {path} pos={int}", "recover physics file end, {path}"),
        meaning=(
            "Recovery found the end of the log in this file. It must be the newest file with records; "
            "later files are deleted right after this line."
        ),
        look="Whether 'delete file' lines for segments follow that were not all zero.",
        next=("info STORE",),
        incidents=("F01",),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally", "DLedgerCommitLog#recover"),
    ),
    Entry(
        id="recovery.next-file",
        severity="normal",
        lines=("recover next physics file, {path}",),
        meaning="Recovery continues in the next segment.",
        look="How many segments are read: hundreds mean a start with an old or empty checkpoint.",
        incidents=("F29",),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
    ),
    Entry(
        id="recovery.over",
        severity="normal",
        lines=(
            "recover last 3 physics file over, last mapped file {path}",
            "recover physics file over, last mapped file {path}",
        ),
        meaning="Recovery read to the last segment and found nothing wrong.",
        look="Nothing.",
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
    ),
    Entry(
        id="recovery.begins-at",
        severity="normal",
        lines=("recover from this mapped file {path}", "dledger recover from this mappFile {path}"),
        meaning=(
            "The segment where recovery after an unclean stop begins: the last whose first record is "
            "not newer than the checkpoint. Queues and index are completed from here on only."
        ),
        look=(
            "Whether consume queues reach at least to this segment; what they lack before it is never "
            "built again."
        ),
        next=("info STORE",),
        incidents=("F29",),
        source=("CommitLog#recoverAbnormally", "DLedgerCommitLog#dledgerRecoverAbnormally"),
    ),
    Entry(
        id="recovery.check-timestamp",
        severity="normal",
        lines=(
            "find check timestamp, {millis}",
            "find check. beginPhyOffset: {physical_offset}, maxPhyOffset",
        ),
        meaning=(
            "The first record of a segment was compared with the checkpoint (or with the consume "
            "queues) to choose where recovery begins."
        ),
        look="Nothing.",
        source=("CommitLog#isMappedFileMatchedRecover",),
    ),
    Entry(
        id="recovery.truncates-queues",
        severity="notice",
        lines=(
            (
                "maxPhyOffsetOfConsumeQueue({max_offset}) >= processOffset({physical_offset}), truncate "
                "dirty logic files"
            ),
        ),
        meaning=(
            "Consume queues point to the end of the recovered log or beyond it. When both numbers are "
            "equal, or differ by one record, nothing is lost. A larger difference is the part of the "
            "log that was lost (asynchronous flush and a crash) or cut off by damage: those messages "
            "were acknowledged."
        ),
        look="The difference of the two numbers, and what is stored at the second.",
        next=("show STORE {physical_offset}", "info STORE"),
        incidents=("F20",),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
    ),
    Entry(
        id="recovery.commitlog-empty",
        severity="problem",
        lines=("The commitlog files are deleted, and delete the consume queue files",),
        meaning=(
            "The commitlog directory was empty at the start, so the broker deleted all consume queues. "
            "The usual cause is a wrong storePathCommitLog or a disk that was not mounted."
        ),
        look=(
            "Is the right disk mounted there? If the commit log turns up again, the queues must be "
            "rebuilt from it."
        ),
        next=("info STORE",),
        incidents=("F32",),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
    ),
    Entry(
        id="recovery.confirm-offset",
        severity="notice",
        lines=(
            "confirmOffset {int} is less than minPhyOffset {int}, correct confirmOffset to minPhyOffset",
            "confirmOffset {physical_offset} is larger than processOffset {int}, correct confirmOffset to",
            "confirmOffset {physical_offset} is larger than lastConfirmValidMsgPhyOffset {int}, correct",
        ),
        meaning=(
            "Controller mode: the replicated position on disk lies outside the recovered log and is "
            "moved into it. Behind the end of the log it means that confirmed messages are gone from "
            "this replica."
        ),
        look=(
            "The end of the log here against that of the other replicas, before this broker becomes master."
        ),
        next=("info STORE",),
        incidents=("F42", "F43"),
        source=("CommitLog#recoverNormally", "CommitLog#recoverAbnormally"),
        releases="5.1 and later",
    ),
    Entry(
        id="recovery.dledger-boundary",
        severity="normal",
        lines=(
            "Recover old commitlog found a illegal magic code={int}",
            "Will set the initial commitlog offset={int} for dledger",
        ),
        meaning=(
            "A store that was written without DLedger is continued by DLedger; this is where the old "
            "log ends."
        ),
        look="Nothing.",
        source=("DLedgerCommitLog#setRecoverPosition",),
    ),
)
