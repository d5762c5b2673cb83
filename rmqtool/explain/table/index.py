"""Index files."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="index.stops",
        severity="problem",
        lines=("build index error, stop building index", "Mark index file cannot build flag"),
        meaning=(
            "No index file can be created or written. From now on messages cannot be found by key, and "
            "the store refuses new messages until a restart."
        ),
        look="Space and inodes where index/ lies.",
        next=("info STORE",),
        incidents=("F21", "F27"),
        source=("IndexService#buildIndex", "IndexService#retryGetAndCreateIndexFile"),
    ),
    Entry(
        id="index.put-key-error",
        severity="problem",
        lines=("putKey error commitlog {physical_offset} uniqkey {word}", "putKey exception, Key: {word}"),
        meaning=(
            "A key of a message could not be written to the index; this message is not found by that key."
        ),
        look="The lines before: a full file that could not be followed by another.",
        next=("show STORE {physical_offset}",),
        incidents=("F26",),
        source=("IndexService#buildIndex", "IndexFile#putKey"),
    ),
    Entry(
        id="index.file-full",
        severity="normal",
        lines=(
            "Index file [{path}] is full, trying to create another one",
            "Over index file capacity: index count = {count}",
        ),
        meaning="An index file is full and the next one is begun.",
        look="Only when it comes every few seconds: then files multiply with hardly an entry each.",
        incidents=("F27",),
        source=("IndexService#putKey", "IndexFile#putKey"),
    ),
    Entry(
        id="index.create-retry",
        severity="notice",
        lines=("Tried to create index file {count} times",),
        meaning="Creating an index file failed and is tried again, three times in all.",
        look="Space, inodes, permissions.",
        incidents=("F21", "F27"),
        source=("IndexService#retryGetAndCreateIndexFile",),
    ),
    Entry(
        id="index.create-error",
        severity="problem",
        lines=("getLastIndexFile exception ",),
        meaning="The next index file could not be created.",
        look="The exception below.",
        incidents=("F21",),
        source=("IndexService#getAndCreateLastIndexFile",),
    ),
    Entry(
        id="index.query-error",
        severity="problem",
        lines=("selectPhyOffset exception ", "queryMsg exception", "queryMessage exception"),
        meaning="A query by key failed inside an index file: a slot or index entry points outside the file.",
        look="Index files with damaged slots or entries.",
        next=("verify STORE",),
        incidents=("F26",),
        source=("IndexFile#selectPhyOffset", "IndexService#queryOffset"),
    ),
    Entry(
        id="index.flush",
        severity="normal",
        lines=("flush index file elapsed time(ms) {millis}",),
        meaning="An index file was written to disk.",
        look="Seconds instead of milliseconds mean a slow disk.",
        source=("IndexFile#flush",),
    ),
)
