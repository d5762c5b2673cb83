"""Disk space, retention and deletion of files."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="disk.physic-full",
        severity="problem",
        lines=(
            "physic disk maybe full soon {ratio}, so mark disk full",
            "physic disk of commitLog maybe full soon, used {ratio}, so mark disk full",
        ),
        meaning=(
            "The disk of the commit log is above the warning level (90 % by default): the store refuses "
            "messages and deletes the oldest segments at once, whatever fileReservedTime says. A ratio "
            "of -1.0 means that the path does not exist."
        ),
        look="What lies on the disk besides the store, and which consumers still need the oldest segments.",
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#isSpaceToDelete",),
    ),
    Entry(
        id="disk.logics-full",
        severity="problem",
        lines=("logics disk maybe full soon {ratio}, so mark disk full",),
        meaning=(
            "The disk of the consume queues is above the warning level: messages are refused and "
            "segments deleted at once."
        ),
        look="What lies on that disk.",
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#isSpaceToDelete",),
    ),
    Entry(
        id="disk.reclaim",
        severity="notice",
        lines=(
            "commitLog disk maybe full soon, so reclaim space, {ratio}",
            "physic disk maybe full soon, so reclaim space, {ratio}",
            "consumeQueue disk maybe full soon, so reclaim space, {ratio}",
            "logics disk maybe full soon, so reclaim space, {ratio}",
            "Logical disk usage {ratio} exceeds ",
        ),
        meaning=(
            "The disk is above diskMaxUsedSpaceRatio (75 %), so expired segments are deleted outside "
            "deleteWhen. Segments younger than fileReservedTime stay until 85 %. A ratio of -1.0 means "
            "that the path does not exist."
        ),
        look="Space: above 85 % segments go whatever their age, above 90 % messages are refused.",
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#isSpaceToDelete",),
    ),
    Entry(
        id="disk.space-ok",
        severity="normal",
        lines=(
            "physic disk space OK {ratio}, so mark disk ok",
            "logics disk space OK {ratio}, so mark disk ok",
            "physic disk space of commitLog OK {ratio}, so mark disk ok",
        ),
        meaning="The disk fell below the warning level again; messages are taken.",
        look="Nothing.",
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#isSpaceToDelete",),
    ),
    Entry(
        id="disk.delete-fails",
        severity="problem",
        lines=("disk space will be full soon, but delete file failed.",),
        meaning=(
            "Space is short and nothing could be deleted: all segments but the last are gone or younger "
            "than fileReservedTime, or something keeps a file open."
        ),
        look=(
            "What else fills the disk; readers that hold the first segment ('destroyed once, but still "
            "alive')."
        ),
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#deleteExpiredFiles",),
    ),
    Entry(
        id="disk.delete-begins",
        severity="notice",
        lines=("begin to delete before {count} hours file. ",),
        meaning=(
            "Expired segments are being deleted. 'cleanAtOnce: true' means regardless of their age, "
            "because space is short."
        ),
        look="cleanAtOnce, and whether consumers were done with these segments.",
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore.CleanCommitLogService#deleteExpiredFiles",),
    ),
    Entry(
        id="disk.time-to-delete",
        severity="normal",
        lines=("it's time to reclaim disk space, {word}", "executeDeleteFilesManually was invoked"),
        meaning="The daily hour of deleteWhen, or a request by an administrator.",
        look="Nothing.",
        source=("DefaultMessageStore.CleanCommitLogService#isTimeToDelete",),
    ),
    Entry(
        id="disk.measure-failed",
        severity="problem",
        lines=("Error when measuring disk space usage, ",),
        meaning=(
            "The space of a path cannot be measured because the path does not exist or cannot be read. "
            "The broker takes that for -1 and begins to reclaim space."
        ),
        look="storePathRootDir and storePathCommitLog; is the disk mounted?",
        incidents=("F21", "F32"),
        source=("UtilAll#getDiskPartitionSpaceUsedPercent",),
    ),
    Entry(
        id="files.deleted-index",
        severity="notice",
        lines=("delete file[REF:{int}] {}/index/{path} OK, W:{int} M:{int}",),
        meaning=(
            "An index file was deleted: at a start after an unclean stop (newer than the checkpoint), "
            "or with the segments that it covers. Messages in it cannot be found by key until they are "
            "indexed again."
        ),
        look=(
            "'last shutdown abnormally' a little before: then the newest index file is made again only "
            "from the segment on where recovery began."
        ),
        next=("verify STORE",),
        incidents=("F26",),
        source=("DefaultMappedFile#destroy", "MappedFile#destroy"),
    ),
    Entry(
        id="files.deleted-segment",
        severity="notice",
        lines=("delete file[REF:{int}] {path} OK, W:{int} M:{int}",),
        meaning=(
            "A file of the store was deleted. W is how far it was written: W:0 is an unused look-ahead "
            "file. Right after 'recover physics file end' a segment with data behind a damaged record "
            "goes this way; at deleteWhen, or with little space, the oldest ones."
        ),
        look="When: during a start or while running; and W.",
        next=("info STORE",),
        incidents=("F01", "F21"),
        source=("DefaultMappedFile#destroy", "MappedFile#destroy"),
    ),
    Entry(
        id="files.delete-failed",
        severity="problem",
        lines=("delete file[REF:{int}] {path} Failed, W:{int} M:{int}", "{path} delete Failed"),
        meaning=(
            "A file could not be deleted. It comes back at the next start, also data that had been cut off."
        ),
        look="Permissions, and whether the file system became read-only.",
        incidents=("F06", "F21"),
        source=("DefaultMappedFile#destroy", "MappedFile#destroy"),
    ),
    Entry(
        id="files.hanging",
        severity="notice",
        lines=(
            "the mappedFile was destroyed once, but still alive, {path}",
            "the mappedFile re delete failed, {path}",
            "destroy mapped file[REF:{int}] {path} Failed. cleanupOver: {word}",
            "have not shutdown, stop unmapping.",
            "have cleanup, do not do it again.",
            "Found a hanged consume queue file, attempting to delete it",
            "this being not executed forever.",
        ),
        meaning=(
            "A file that should be deleted is still being read (a slow consumer or a slave holds it). "
            "It is tried again; until then its space is not free."
        ),
        look="Who reads so far back; whether the same file is named for hours.",
        incidents=("F21",),
        source=("MappedFileQueue#retryDeleteFirstFile", "DefaultMappedFile#cleanup"),
    ),
    Entry(
        id="files.re-deleted",
        severity="normal",
        lines=("the mappedFile re delete OK, {path}",),
        meaning="A file that could not be deleted before is gone now.",
        look="Nothing.",
        source=("MappedFileQueue#retryDeleteFirstFile",),
    ),
    Entry(
        id="files.expired-queue-file",
        severity="normal",
        lines=(
            "physic min offset {min_offset}, logics in current mappedFile max offset {max_offset}, delete it",
            (
                "physic min commitlog offset {min_offset}, current mappedFile's max offset {max_offset}, "
                "delete it"
            ),
        ),
        meaning="A queue file (or timer log file) whose records are all expired is deleted.",
        look="Nothing.",
        source=("MappedFileQueue#deleteExpiredFileByOffset",),
    ),
    Entry(
        id="files.expired-error",
        severity="problem",
        lines=(
            "deleteExpiredFile remove failed.",
            "deleteExpiredFile has exception.",
            "Found error data in [{path}] checkOffset:{int} unitSize:{int}",
        ),
        meaning="Deleting expired files failed on one of them.",
        look="The exception below; the first files of the directory.",
        next=("info STORE",),
        incidents=("F21",),
        source=("MappedFileQueue#deleteExpiredFile", "IndexService#deleteExpiredFile"),
    ),
    Entry(
        id="files.unmapped",
        severity="normal",
        lines=(
            "unmap file[REF:{int}] {path} OK",
            "close file channel {path} OK",
            "{path} delete OK",
            "{path} create OK",
        ),
        meaning="A file was closed, or the file 'abort' made or removed.",
        look="Nothing.",
        source=("DefaultMappedFile#cleanup", "DefaultMessageStore#createTempFile"),
    ),
)
