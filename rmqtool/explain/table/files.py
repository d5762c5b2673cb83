"""Mapped files: creating, writing and flushing them."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="mapped.create-failed",
        severity="problem",
        lines=("Failed to create file {path}",),
        meaning=(
            "A file of the store could not be created or opened. 'Not a directory' or 'No such file' is "
            "a wrong or missing path, 'No space left on device' a full disk (or no inodes), 'Too many "
            "open files' the limit of the process."
        ),
        look="The exception below.",
        next=("info STORE",),
        incidents=("F21", "F30"),
        source=("DefaultMappedFile#init", "MappedFile#init"),
    ),
    Entry(
        id="mapped.map-failed",
        severity="problem",
        lines=("Failed to map file {path}", "map file {path} Failed. "),
        meaning=(
            "The file exists but could not be mapped into memory: the limit of mappings "
            "(vm.max_map_count) or of address space is reached. The file stays behind, maybe empty."
        ),
        look="vm.max_map_count against the number of files; 'Map failed' below.",
        next=("info STORE",),
        incidents=("F12", "F30"),
        source=("DefaultMappedFile#init", "TimerWheel#TimerWheel"),
    ),
    Entry(
        id="mapped.create-exception",
        severity="problem",
        lines=("create mappedFile exception",),
        meaning="The next file of a queue or of the log could not be created.",
        look="The exception below, space and inodes.",
        next=("info STORE",),
        incidents=("F21",),
        source=("MappedFileQueue#doCreateMappedFile",),
    ),
    Entry(
        id="mapped.allocate-exception",
        severity="problem",
        lines=("AllocateMappedFileService service has exception",),
        meaning=(
            "Files are created ahead by a thread of its own, and it failed. The message that needed the "
            "file is refused with 'create mapped file failed'."
        ),
        look="The exception below, space, inodes, permissions.",
        next=("info STORE",),
        incidents=("F21",),
        source=("AllocateMappedFileService#mmapOperation",),
    ),
    Entry(
        id="mapped.allocate-timeout",
        severity="problem",
        lines=(
            "create mmap timeout {path} {size}",
            "this mmap request expired, maybe cause timeout {path} {size}",
            "never expected here, maybe cause timeout {path} {size}",
            "find preallocate mmap failed, this never happen",
        ),
        meaning=(
            "Creating the next file took more than five seconds: the disk hangs, or the file system "
            "zeroes the whole file. Meanwhile messages are refused."
        ),
        look="Latency of the disk, warmMapedFileEnable, and swapping.",
        incidents=("F21", "F30"),
        source=("AllocateMappedFileService#putRequestAndReturnMappedFile",),
    ),
    Entry(
        id="mapped.allocate-slow",
        severity="notice",
        lines=("create mappedFile spent time(ms) {millis} queue size {count} {path}",),
        meaning="Creating a file took long. Senders waited if they needed it at that moment.",
        look="Latency of the disk.",
        source=("AllocateMappedFileService#mmapOperation",),
    ),
    Entry(
        id="mapped.transient-pool",
        severity="notice",
        lines=(
            "TransientStorePool is not enough, so create mapped file error",
            "TransientStorePool is not enough, so skip preallocate mapped file",
            "TransientStorePool only remain {count} sheets",
        ),
        meaning=(
            "The off-heap buffers of transientStorePoolEnable are used up because committing to the "
            "page cache is slower than writing; messages are refused for a moment. Data in these "
            "buffers is lost when the process dies."
        ),
        look="Disk latency; transientStorePoolSize.",
        source=("AllocateMappedFileService#putRequestAndReturnMappedFile", "TransientStorePool#borrowBuffer"),
    ),
    Entry(
        id="mapped.use-default",
        severity="normal",
        lines=("Use default implementation.",),
        meaning="No plug-in for mapped files is installed; the built-in one is used.",
        look="Nothing.",
        source=("AllocateMappedFileService#mmapOperation",),
    ),
    Entry(
        id="mapped.append-null",
        severity="problem",
        lines=(
            "MappedFile.appendMessage return null, wrotePosition: {int} fileSize: {size}",
            "Error occurred when append message to mappedFile.",
            "Error occurred when commit data to FileChannel.",
        ),
        meaning="Bytes could not be written into a file of the store.",
        look="The exception below; the state of the disk.",
        next=("info STORE",),
        incidents=("F30",),
        source=("DefaultMappedFile#appendMessagesInner", "DefaultMappedFile#commit0"),
    ),
    Entry(
        id="mapped.force-failed",
        severity="problem",
        lines=("Error occurred when force data to disk.",),
        meaning=(
            "The kernel could not write pages to disk (fsync failed): they may be lost although the "
            "broker continues. After such an error memory and disk can differ."
        ),
        look="The kernel's log for I/O errors; then a replica.",
        next=("verify STORE",),
        incidents=("F30",),
        source=("DefaultMappedFile#flush", "MappedFile#flush"),
    ),
    Entry(
        id="mapped.hold-failed",
        severity="notice",
        lines=(
            "in flush, hold failed, flush offset = {int}",
            "in commit, hold failed, commit offset = {int}",
            "matched, but hold failed, request pos: {int}",
            "in swapMap, hold failed, fileName: {path}",
        ),
        meaning=(
            "A file was being deleted while it should be flushed or read. Harmless at the end of "
            "retention; while stopping, a sign that the order went wrong."
        ),
        look="Whether the file named was expired.",
        source=("DefaultMappedFile#flush", "DefaultMappedFile#selectMappedBuffer"),
    ),
    Entry(
        id="mapped.select-invalid",
        severity="problem",
        lines=(
            (
                "selectMappedBuffer request pos invalid, request pos: {int}, size: {size}, fileFromOffset: "
                "{physical_offset}"
            ),
            "Get data failed pos:{int} size:{size} fileFromOffset:{physical_offset}",
        ),
        meaning=(
            "A range was asked for that lies behind what the file holds: an entry points past the end of "
            "the log, or the log was cut behind it."
        ),
        look="Which queue or index points there; on a slave, whether it is behind its own queues.",
        next=("verify STORE",),
        incidents=("F20", "F42"),
        source=("DefaultMappedFile#selectMappedBuffer",),
    ),
    Entry(
        id="mapped.swap-failed",
        severity="notice",
        lines=("swapMap file {path} Failed. ", "cleanSwapedMap file {path} Failed. "),
        meaning="An old file could not be mapped again to free its memory; it stays mapped as it was.",
        look="The exception below.",
        source=("DefaultMappedFile#swapMap",),
        releases="5.x",
    ),
    Entry(
        id="mapped.offset-exception",
        severity="problem",
        lines=(
            "findMappedFileByOffset Exception",
            "getFirstMappedFile has exception.",
            "getLastMappedFile has exception.",
            "getMinOffset has exception.",
            "getLastMappedFile error. offset:{int}",
        ),
        meaning="Looking for the file that holds an offset failed, mostly while files were being deleted.",
        look="The exception below.",
        source=("MappedFileQueue#findMappedFileByOffset",),
    ),
    Entry(
        id="flush.slow",
        severity="notice",
        lines=("Flush data to disk costs {millis} ms", "Commit data to file costs {millis} ms"),
        meaning=(
            "Writing to disk took more than half a second. Once or twice is nothing; often it leads to "
            "full sender queues and FLUSH_DISK_TIMEOUT."
        ),
        look="The latency of the disk at these times.",
        source=("CommitLog.FlushRealTimeService#run", "CommitLog.CommitRealTimeService#run"),
    ),
    Entry(
        id="flush.timeout",
        severity="problem",
        lines=(
            "do groupcommit, wait for flush failed, topic: {topic} tags: {word} client address: {word}",
            "do groupcommit, wait for flush failed",
        ),
        meaning=(
            "Synchronous flush did not come back in time: the sender got FLUSH_DISK_TIMEOUT. The "
            "message is in the log and probably reaches the disk; a sender that repeats makes a "
            "duplicate."
        ),
        look="Disk latency; duplicates in that minute.",
        incidents=("F21",),
        source=("CommitLog#handleDiskFlush",),
    ),
    Entry(
        id="flush.service-exception",
        severity="problem",
        lines=(
            "GroupCommitService Exception, ",
            "FlushRealTimeService service has exception",
            "CommitRealTimeService service has exception",
            "FlushConsumeQueueService service has exception",
            "GroupCommitService service has exception",
        ),
        meaning=(
            "A flush thread met an exception and continues. What it was to flush is on disk only after a "
            "later round."
        ),
        look="The exception below.",
        incidents=("F30",),
        source=("CommitLog#run",),
    ),
    Entry(
        id="flush.shutdown-retry",
        severity="normal",
        lines=("service shutdown, retry {count} times OK", "service shutdown, retry {count} times Not OK"),
        meaning=(
            "At the stop the flush thread writes what is left, in up to ten rounds; 'Not OK' means "
            "there was still some."
        ),
        look="A last line that says 'Not OK'.",
        source=("CommitLog#run",),
    ),
    Entry(
        id="flush.behind",
        severity="normal",
        lines=("how much disk fall behind memory, {int}",),
        meaning="Bytes that are in memory and not on disk yet.",
        look="Only a number that keeps growing.",
        source=("CommitLog.FlushRealTimeService#printFlushProgress",),
    ),
    Entry(
        id="flush.watcher",
        severity="normal",
        lines=(
            "take flush disk commit request, but interrupted, this may caused by shutdown",
            "An exception occurred while waiting for flushing disk to complete. this may caused by shutdown",
        ),
        meaning="The thread that watches synchronous flushes was ended with the broker.",
        look="Only when the broker was not stopping.",
        source=("FlushDiskWatcher#run",),
    ),
    Entry(
        id="mapped.warm-up",
        severity="normal",
        lines=(
            "mapped file warm-up done",
            "mlock {int} {path} {size} ret = ",
            "madvise {int} {path} {size} ret = ",
        ),
        meaning="A new file is written through and locked in memory (warmMapedFileEnable).",
        look="A cost of seconds: senders may have waited.",
        source=("DefaultMappedFile#warmMappedFile", "DefaultMappedFile#mlock"),
    ),
)
