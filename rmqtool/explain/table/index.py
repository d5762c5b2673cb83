"""Index files."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        "index.stops",
        "problem",
        ("build index error, stop building index", "Mark index file cannot build flag"),
        "No index file can be created or written. From now on messages cannot be found by key, and the store refuses new "
        "messages until a restart.",
        "Space and inodes where index/ lies.",
        ("info STORE",),
        ("F21", "F27"),
        ("IndexService#buildIndex", "IndexService#retryGetAndCreateIndexFile"),
    ),
    Entry(
        "index.put-key-error",
        "problem",
        ("putKey error commitlog {physical_offset} uniqkey {word}", "putKey exception, Key: {word}"),
        "A key of a message could not be written to the index; this message is not found by that key.",
        "The lines before: a full file that could not be followed by another.",
        ("show STORE {physical_offset}",),
        ("F26",),
        ("IndexService#buildIndex", "IndexFile#putKey"),
    ),
    Entry(
        "index.file-full",
        "normal",
        (
            "Index file [{path}] is full, trying to create another one",
            "Over index file capacity: index count = {count}",
        ),
        "An index file has all its items and the next one is begun.",
        "Only when it comes again and again within seconds: then files multiply with hardly an item each.",
        (),
        ("F27",),
        ("IndexService#putKey", "IndexFile#putKey"),
    ),
    Entry(
        "index.create-retry",
        "notice",
        ("Tried to create index file {count} times",),
        "Creating an index file failed and is tried again, three times in all.",
        "Space, inodes, permissions.",
        (),
        ("F21", "F27"),
        ("IndexService#retryGetAndCreateIndexFile",),
    ),
    Entry(
        "index.create-error",
        "problem",
        ("getLastIndexFile exception ",),
        "The next index file could not be created.",
        "The exception below.",
        (),
        ("F21",),
        ("IndexService#getAndCreateLastIndexFile",),
    ),
    Entry(
        "index.query-error",
        "problem",
        ("selectPhyOffset exception ", "queryMsg exception", "queryMessage exception"),
        "A query by key failed inside an index file: a slot or item points outside the file.",
        "Index files with damaged slots or items.",
        ("verify STORE",),
        ("F26",),
        ("IndexFile#selectPhyOffset", "IndexService#queryOffset"),
    ),
    Entry(
        "index.flush",
        "normal",
        ("flush index file elapsed time(ms) {millis}",),
        "An index file was written to disk.",
        "Seconds instead of milliseconds mean a slow disk.",
        (),
        (),
        ("IndexFile#flush",),
    ),
)
