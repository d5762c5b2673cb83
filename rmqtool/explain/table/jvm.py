"""Java and the machine: errors that stop a broker whatever RocketMQ does. Tried last."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="os.no-space",
        severity="problem",
        lines=("No space left on device", "Disk quota exceeded"),
        meaning=(
            "The disk, its inodes or a quota is full. Files that are sparse fail with SIGBUS instead "
            "when they are filled."
        ),
        look="Space and inodes where the store lies.",
        next=("info STORE",),
        incidents=("F21",),
    ),
    Entry(
        id="os.io-error",
        severity="problem",
        lines=("Input/output error", "java.io.IOException: I/O error"),
        meaning="The medium could not be read or written.",
        look=(
            "The kernel's log. Copy the store elsewhere before anything else; unreadable ranges are "
            "passed over."
        ),
        next=("verify STORE",),
        incidents=("F30",),
    ),
    Entry(
        id="os.read-only",
        severity="problem",
        lines=("Read-only file system",),
        meaning="The file system was mounted read-only, usually by the kernel after an error.",
        look="The kernel's log.",
        next=("verify STORE",),
        incidents=("F30",),
    ),
    Entry(
        id="os.too-many-files",
        severity="problem",
        lines=("Too many open files",),
        meaning="The process has reached its limit of open files (segments, queue files and connections).",
        look="ulimit -n of the broker's user; number of topics times queues.",
        next=("info STORE",),
        incidents=("F21",),
    ),
    Entry(
        id="os.permission",
        severity="problem",
        lines=("(Permission denied)", "java.nio.file.AccessDeniedException"),
        meaning=(
            "The broker may not read or write a file of its store, often after it was started once as "
            "another user."
        ),
        look="Owner of the files.",
        next=("info STORE",),
    ),
    Entry(
        id="os.no-such-path",
        severity="problem",
        lines=(
            "java.io.FileNotFoundException: {path} (Not a directory)",
            "java.io.FileNotFoundException: {path} (No such file or directory)",
        ),
        meaning=(
            "A path of the store does not exist, or a part of it that should be a directory is a file: a "
            "wrong setting, a disk that is not mounted, or a directory that was removed under a running "
            "broker."
        ),
        look="The path, and the mount points above it.",
        next=("info STORE",),
        incidents=("F32",),
    ),
    Entry(
        id="jvm.unsafe-fault",
        severity="problem",
        lines=(
            "a fault occurred in a recent unsafe memory access operation",
            "java.lang.InternalError: a fault occurred",
        ),
        meaning=(
            "Reading or writing a mapped file failed in the kernel: a bad block, a file that was cut "
            "while it was mapped, or a sparse file on a full disk."
        ),
        look="The kernel's log, space, and whether somebody truncated files.",
        next=("verify STORE",),
        incidents=("F30",),
    ),
    Entry(
        id="jvm.sigbus",
        severity="problem",
        lines=("SIGBUS (0x{magic})", "#  SIGBUS", "SIGSEGV (0xb)"),
        meaning=(
            "The process was killed by a memory fault, on a mapped file mostly for the same reasons as "
            "a bus error: a bad block, a file that was cut, a full disk. SIGSEGV in a RocketMQ thread: "
            "a file was deleted while it was being written."
        ),
        look="hs_err_pid*.log: the thread and the file; the kernel's log.",
        next=("info STORE", "verify STORE"),
        incidents=("F30",),
    ),
    Entry(
        id="jvm.map-failed",
        severity="problem",
        lines=("java.io.IOException: Map failed", "OutOfMemoryError: Map failed"),
        meaning="No further file could be mapped: vm.max_map_count or the address space is used up.",
        look="vm.max_map_count against the number of files of the store.",
        next=("info STORE",),
        incidents=("F12", "F30"),
    ),
    Entry(
        id="jvm.out-of-memory",
        severity="problem",
        lines=("java.lang.OutOfMemoryError: {text}", "java.lang.OutOfMemoryError"),
        meaning=(
            "Memory ran out. During 'load' of 4.x it can be a single damaged length field that asks for "
            "gigabytes."
        ),
        look=(
            "What was being done: loading with an absurd size in a record, or ordinary work with too "
            "small a heap."
        ),
        next=("verify STORE",),
        incidents=("F04",),
    ),
    Entry(
        id="jvm.name-no-number",
        severity="problem",
        lines=('java.lang.NumberFormatException: For input string: "{text}',),
        meaning=(
            "A name or number that should be decimal is not: in loading a foreign file in the store, "
            "elsewhere a wrong value in a message or setting."
        ),
        look="The text in quotes, and the file in the line above.",
        next=("info STORE",),
        incidents=("F08", "F12"),
    ),
    Entry(
        id="jvm.out-of-bounds",
        severity="problem",
        lines=(
            "java.lang.IndexOutOfBoundsException: Range [",
            "java.lang.NegativeArraySizeException: {int}",
            "java.nio.BufferUnderflowException",
        ),
        meaning=(
            "A length inside a record is negative or larger than the record: damaged bytes were read as "
            "lengths."
        ),
        look="The line above: it names the offset or the step.",
        next=("verify STORE",),
        incidents=("F04",),
    ),
    Entry(
        id="jvm.uncaught",
        severity="problem",
        lines=(
            "[BUG] Thread has an uncaught exception, threadId={int}, threadName={word}",
            "Uncaught exception in thread '",
        ),
        meaning=(
            "A thread of the broker died. What it did (flushing, cleaning, dispatching) is not done any "
            "more until a restart."
        ),
        look="The name of the thread and the exception.",
        source=("ThreadFactoryImpl#newThread",),
    ),
    Entry(
        id="jvm.service-exception",
        severity="problem",
        lines=("{word} service has exception",),
        meaning="A service thread met an exception and continues with its next round.",
        look="The exception below, and whether it comes back.",
        source=("ServiceThread#run",),
    ),
    Entry(
        id="jvm.service-lifecycle",
        severity="normal",
        lines=(
            "{word} service started",
            "{word} service end",
            "shutdown thread[{word}] interrupt=",
            "join thread[{word}], elapsed time: {millis}ms",
            "makestop thread[{word}]",
        ),
        meaning="A service thread began or ended.",
        look="An end while the broker is not stopping.",
        source=("ServiceThread#run",),
    ),
)
