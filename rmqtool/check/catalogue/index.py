"""Index files."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import SHOW, Code, Severity

ENTRIES = (
    Code(
        "IDX-ABSENT",
        Severity.WARNING,
        "no index file holds the keys of {found} {found:record|records}",
        "queries by key find nothing; with messageIndexEnable=false give --store-config",
    ),
    Code(
        "IDX-AHEAD",
        Severity.WARNING,
        "the index ends at offset {found}, beyond the end of the log, {expected}",
        "a broker indexes no message until the log has grown past it",
    ),
    Code(
        "IDX-BEHIND",
        Severity.WARNING,
        "the index ends before the log does: the keys of {found} {found:record|records} are not in it",
        "queries by key do not find them; rmqtool rebuild STORE --what index rebuilds it",
    ),
    Code(
        "IDX-BEYOND-LOG",
        Severity.WARNING,
        "{found} index {found:entry points|entries point} beyond the end of the log",
        "records that were there have been cut off",
    ),
    Code(
        "IDX-CHAIN",
        Severity.ERROR,
        "the index entry's prev is {found}, the one before it in its slot {expected}",
        "older keys of this slot are not found; rmqtool dump of the file shows the entry",
    ),
    Code(
        "IDX-COUNT",
        Severity.ERROR,
        "indexCount is {found}, by the index entries it should be {expected}",
        "a broker reads and writes index entries by it",
    ),
    Code(
        "IDX-CYCLE",
        Severity.ERROR,
        "the index entry's prev is {found}, which is not older: a query that follows it may never end",
        "move the file away while the broker is down",
    ),
    Code(
        "IDX-DANGLING",
        Severity.ERROR,
        "{found} index {found:entry points|entries point} to no record",
        "rmqtool show STORE OFFSET shows what is stored there",
    ),
    Code(
        "IDX-DOUBLE",
        Severity.NOTE,
        "{found} {found:key of the record stands|keys of the record stand} in the index twice",
        "a start dispatched the record again; queries find it twice",
    ),
    Code(
        "IDX-EMPTY",
        Severity.NOTE,
        "the index file holds no entry",
        "rmqtool info STORE shows how much disk it takes",
    ),
    Code(
        "IDX-GEOMETRY",
        Severity.NOTE,
        "not checked: {found}",
        "give maxHashSlotNum and maxIndexNum with --store-config",
    ),
    Code("IDX-HASH", Severity.ERROR, "the index entry's hash is {found}, the record has {expected}", SHOW),
    Code(
        "IDX-HEADER",
        Severity.WARNING,
        "{part} in the header is {found}, by the content {expected}",
        "queries use the header's times to choose files",
    ),
    Code(
        "IDX-HEADER-LOST",
        Severity.WARNING,
        "{found} {found:field of the header disagrees|fields of the header disagree} with the content",
        "queries use the header's times to choose files, and a broker continues by its count",
    ),
    Code(
        "IDX-MISSING",
        Severity.WARNING,
        "keys of {found} {found:record|records} are not in the index",
        "queries by key do not find them; rmqtool rebuild STORE --what index rebuilds it",
    ),
    Code(
        "IDX-MORE",
        Severity.ERROR,
        "{found} further findings {part} of this file are not listed",
        "rmqtool dump of the file shows its entries",
    ),
    Code(
        "IDX-OFFSET",
        Severity.ERROR,
        "the index entry points to {found}, its key belongs to the record at {expected}",
        SHOW,
    ),
    Code(
        "IDX-SIZE",
        Severity.WARNING,
        "the index file is {found} bytes long, {expected} with the geometry of its content or siblings",
        "a broker maps it with the length that is configured",
    ),
    Code(
        "IDX-SLOT",
        Severity.ERROR,
        "the slot holds {found}, the newest entry of its chain is {expected}",
        "keys of this slot are not found; rmqtool rebuild STORE --what index rebuilds it",
    ),
    Code(
        "IDX-TIME",
        Severity.WARNING,
        "the index entry's timeDiff is {found} s, by the record's store time {expected} s",
        "queries for a time range miss it",
    ),
    Code(
        "IDX-UNREADABLE",
        Severity.ERROR,
        "the index file cannot be read: {found}",
        "copy the disk first; then try --safe-io",
    ),
)
