"""Stop: what a broker says that is asked to end."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="stop.keep-abort",
        severity="problem",
        lines=("the store may be wrong, so shutdown abnormally, and keep abort file",),
        meaning=(
            "At the stop the store was not writable or not all of the log had been dispatched. 'abort' "
            "is kept: the next start is an abnormal recovery."
        ),
        look="Lines before about a full disk, a queue that cannot be written, or undispatched bytes.",
        next=("info STORE", "verify STORE"),
        incidents=("F21", "F29"),
        source=("DefaultMessageStore#shutdown",),
    ),
    Entry(
        id="stop.undispatched",
        severity="problem",
        lines=(
            (
                "ReputMessageService, but commitlog have not finish to be dispatched, CL: {max_offset} "
                "reputFromOffset: {from_offset}"
            ),
            (
                "ReputMessageService, but CommitLog have not finish to be dispatched, CommitLog max "
                "offset={max_offset}, reputFromOffset={from_offset}"
            ),
        ),
        meaning=(
            "The broker stopped before the last records had consume queue and index entries. 'abort' is "
            "kept, and the next start must dispatch them; stores of 4.3 did not, and every later entry "
            "of the queue was shifted."
        ),
        look="The record at reputFromOffset: if it is damaged, dispatch was stuck there.",
        next=("show STORE {from_offset}", "verify STORE"),
        incidents=("F14",),
        source=("DefaultMessageStore.ReputMessageService#shutdown",),
        derive="undispatched",
    ),
    Entry(
        id="stop.exception",
        severity="problem",
        lines=("shutdown Exception, ",),
        meaning=(
            "An exception interrupted the stop of the store; what came after it was not flushed or closed."
        ),
        look="The exception below, and whether 'abort' is still there.",
        next=("info STORE",),
        incidents=("F29",),
        source=("DefaultMessageStore#shutdown",),
    ),
    Entry(
        id="stop.forbidden",
        severity="normal",
        lines=("message store has shutdown, so {}is forbidden",),
        meaning="A request arrived while the store was stopping or had stopped.",
        look="Only when it continues: the store went down and the process stayed.",
        source=("DefaultMessageStore#getMessage", "HookUtils#checkBeforePutMessage"),
    ),
    Entry(
        id="stop.hook",
        severity="normal",
        lines=("Shutdown hook was invoked, ", "Shutdown hook over, consuming total time(ms): {millis}"),
        meaning=(
            "The process was asked to end (SIGTERM) and stopped in order. Without the second line it "
            "was killed on the way."
        ),
        look="Whether the second line is there.",
        source=("BrokerStartup#buildShutdownHook",),
    ),
)
