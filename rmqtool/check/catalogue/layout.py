"""Directory layout: names, kinds and sizes of files."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import Code, Severity

ENTRIES = (
    Code("DIR-UNKNOWN", Severity.NOTE, "no file of RocketMQ's: {found}", "rmqtool info STORE lists it"),
    Code(
        "DIR-STRAY",
        Severity.WARNING,
        "a file whose name is not an offset is among the segments: {found}",
        "a broker does not start with it; move it away",
    ),
    Code(
        "DIR-EMPTY-FILE",
        Severity.WARNING,
        "the file has no bytes",
        "4.x does not start with it, 5.x deletes it when it is the last",
    ),
    Code(
        "DIR-SIZE",
        Severity.WARNING,
        "{found} bytes long, other files {expected}",
        "a broker with one configured size does not start, or leaves a compaction log out",
    ),
    Code(
        "DIR-DIRECTORY",
        Severity.WARNING,
        "a directory is where {found} files belong",
        "4.x does not start with it in a commit log or queue, 5.x not with a number in index/ or in the "
        "place of a timer file; no broker can save a table over it",
    ),
    Code(
        "DIR-GAP",
        Severity.ERROR,
        "no file covers offsets {expected} to {found}",
        "look for the missing file in backups and replicas",
    ),
    Code(
        "DIR-TWIN",
        Severity.ERROR,
        "a second file begins at offset {expected}: {found}",
        "keep the one that holds the data",
    ),
    Code(
        "DIR-NO-LOG",
        Severity.ERROR,
        "there is no commit log file, but {found} {found:file|files} of queues: a broker "
        "destroys {found:it|them} when it starts",
        "is the disk mounted, is it the right path? --commitlog DIR names another one",
    ),
    Code(
        "DIR-LOG-GONE",
        Severity.ERROR,
        "there is no commit log file, though the store had messages (seen in {found})",
        "is the disk mounted, is it the right path? --commitlog DIR names another one",
    ),
    Code(
        "DIR-BLOCKED",
        Severity.ERROR,
        "not a directory: a broker can make no file below it",
        "move it out of the store; if it is a link, mount the disk that it leads to",
    ),
    Code(
        "DIR-SETTING",
        Severity.WARNING,
        "the settings say {expected} bytes a file, the {part} files have {found}",
        "a broker with these settings does not start",
    ),
    Code(
        "DIR-OVERLAP",
        Severity.ERROR,
        "begins at {found}, before the previous file ends at {expected}",
        "see rmqtool info STORE",
    ),
    Code(
        "DIR-NAME",
        Severity.WARNING,
        "the name is not {expected}: a broker puts files in the order of their names, and gives those "
        "that it makes 20 digits",
        "rename it while no broker runs; rmqtool recover does so",
    ),
    Code(
        "DIR-UNREADABLE", Severity.ERROR, "cannot be read: {found}", "copy the disk first; then try --safe-io"
    ),
)
