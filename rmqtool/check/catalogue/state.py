"""Checkpoint, abort and lock."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import Code, Severity

ENTRIES = (
    Code(
        "CP-ABORT",
        Severity.NOTE,
        "the last run did not end, or has not ended yet{found}",
        "the next start recovers; copies of a running store look the same",
    ),
    Code(
        "CP-ABORT-DIRECTORY",
        Severity.WARNING,
        "abort is a directory",
        "every start recovers as after a crash, and 5.x then fails; remove it",
    ),
    Code(
        "CP-BEHIND",
        Severity.NOTE,
        "{part} is {found}, the last record was stored at {expected}",
        "a start after a crash reads the log from there on",
    ),
    Code(
        "CP-CONFIRM",
        Severity.NOTE,
        "{part} is {found}, end of the log: {expected}",
        "matters in controller and duplication mode only",
    ),
    Code("CP-DIRECTORY", Severity.WARNING, "checkpoint is a directory", "a broker does not start; remove it"),
    Code(
        "CP-FUTURE",
        Severity.WARNING,
        "{part} is {found}, later than every record (the last one: {expected}): the log's end may be missing",
        "look for the lost end in replicas; a start after a crash looks at the last segment only",
    ),
    Code(
        "CP-LOCK",
        Severity.NOTE,
        "a broker holds the store{found}",
        "the end of everything may move while it is read",
    ),
    Code("CP-LOCK-DIRECTORY", Severity.WARNING, "lock is a directory", "a broker does not start; remove it"),
    Code(
        "CP-MISSING",
        Severity.NOTE,
        "there is no checkpoint",
        "it counts as zeros: a start after a crash reads the whole log",
    ),
    Code(
        "CP-NEGATIVE",
        Severity.NOTE,
        "{part} is {found}",
        "it counts as zero: a start after a crash reads the whole log",
    ),
    Code(
        "CP-REST",
        Severity.NOTE,
        "bytes after the fields of the checkpoint are not zero",
        "no known release writes there",
    ),
    Code(
        "CP-SIZE",
        Severity.NOTE,
        "the checkpoint is {found} bytes long instead of {expected}",
        "a broker reads what is missing as zeros and ignores the rest",
    ),
    Code(
        "CP-TIMERS-AHEAD",
        Severity.ERROR,
        "timers were read up to {found}, a time that has not come: up to {expected} are not delivered "
        "until then",
        "a broker writes no such time; bring config/timercheck, timerwheel and timerlog back from one backup",
    ),
    Code(
        "CP-TIMERS-BEHIND",
        Severity.ERROR,
        "the master has taken timers up to queue offset {found}, the timer log has more: {expected} "
        "{expected:is|are} put there again, and delivered once more",
        "rmqtool recover STORE makes a timer log of those that wait",
    ),
    Code(
        "CP-TIMERS-UNKNOWN",
        Severity.ERROR,
        "{found}: up to {expected} {expected:timer is|timers are} put into the timer log again, and those "
        "that were delivered are delivered once more",
        "bring config/timercheck and the files of timerlog back from one backup",
    ),
    Code(
        "CP-UNREADABLE",
        Severity.WARNING,
        "the checkpoint cannot be read: {found}",
        "copy the disk first; then try --safe-io",
    ),
    Code("CP-ZERO", Severity.NOTE, "{part} is zero", "a start after a crash reads the whole log"),
)
