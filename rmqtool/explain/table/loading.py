"""Files that are loaded: segments, queue files, configuration."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        "load.length-mismatch",
        "problem",
        (
            "{path}\t{size} length not matched message store config value",
            "{path} {size} length not matched message store config value",
        ),
        "A file in a directory of segments has not the configured size, so the broker refuses to start (up to 4.4.0 it "
        "skipped the rest of the list and started). It is a stray file, a copy cut short, a file of size 0 left by a "
        "crash, or the configured size was changed.",
        "The size named: 0 is an unused file, a smaller one a copy that was cut short, another round size a changed "
        "mappedFileSizeCommitLog or mappedFileSizeConsumeQueue.",
        ("info STORE", "verify STORE"),
        ("F10", "F11", "F12"),
        ("MappedFileQueue#load",),
    ),
    Entry(
        "load.empty-file-deleted",
        "notice",
        ("{path} size is 0, auto delete. is_ok: {word}",),
        "The last file of a directory had size 0, as a crash right after its creation leaves it, and was deleted. "
        "Nothing is lost. Earlier releases refuse to start here.",
        "Whether the name is a segment's: any empty file that sorts last is deleted.",
        (),
        ("F12",),
        ("MappedFileQueue#doLoad",),
        "5.1.2 and later",
    ),
    Entry(
        "load.file-error",
        "problem",
        ("load file {path} error",),
        "A file could not be loaded: its name is no number, or it cannot be opened or mapped. A foreign name in the "
        "index directory is only passed over; anything else makes the broker refuse to start.",
        "The exception below; the name and permissions of the file.",
        ("info STORE",),
        ("F12",),
        ("MappedFileQueue#doLoad", "IndexService#load"),
    ),
    Entry(
        "load.not-adjacent",
        "problem",
        (
            "[BUG]The mappedFile queue's data is damaged, the adjacent mappedFile's offset don't match. pre file "
            "{path}, cur file {other_path}",
        ),
        "Two neighbouring files are not one file size apart: a segment is missing in between, the same one lies in two "
        "directories, or the configured size is not that of the files. The broker goes on and reads wrong places.",
        "The names: which segment is missing, or whether both are the same.",
        ("info STORE", "verify STORE"),
        ("F09", "F11", "F13"),
        ("MappedFileQueue#checkSelf",),
    ),
    Entry(
        "load.offset-not-matched",
        "problem",
        (
            "Offset not matched. Request offset: {physical_offset}, firstOffset: {min_offset}, lastOffset: {max_offset}, "
            "mappedFileSize: {size}, mappedFiles count: {count}",
        ),
        "An offset was asked for that lies in none of the files: they are not contiguous, have another size than "
        "configured, or the offset belongs to another store or to data that is deleted. Offsets of queues (bytes in the "
        "queue) are reported with the same line.",
        "(lastOffset - firstOffset) / mappedFileSize against the number of files: not equal means a gap. A request "
        "below firstOffset is expired data.",
        ("info STORE", "show STORE {physical_offset}"),
        ("F09", "F11", "F35"),
        ("MappedFileQueue#findMappedFileByOffset",),
    ),
    Entry(
        "load.file-ok",
        "normal",
        ("load /{path} OK", "load index file OK, {path}", "load {path} OK"),
        "A file was loaded.",
        "Nothing.",
        (),
        (),
        ("MappedFileQueue#doLoad", "IndexService#load", "ConfigManager#load"),
    ),
    Entry(
        "config.primary-unusable",
        "problem",
        ("load {path} failed, and try to load backup file",),
        "A configuration file is damaged and its .bak is taken instead. The damaged file is overwritten at the next "
        "persist, within seconds. If there is no .bak, or an empty one, the broker starts with an empty table.",
        "The size of the file and its .bak; save both before the broker runs on. Zeros come from a power loss.",
        ("info STORE", "verify STORE"),
        ("F33",),
        ("ConfigManager#load",),
    ),
    Entry(
        "config.backup-unusable",
        "problem",
        ("load {path} Failed",),
        "The .bak of a configuration file cannot be read either: the broker refuses to start. (For delayOffset.json of "
        "4.x it is the store that does not load.)",
        "The file and its .bak; what is left in them can be merged by hand.",
        ("info STORE", "verify STORE"),
        ("F33",),
        ("ConfigManager#loadBak",),
    ),
    Entry(
        "config.persist-failed",
        "problem",
        ("persist file {path} exception", "Persist file Exception, {path}"),
        "A configuration file could not be written; offsets and topics in memory are newer than on disk. A crash now "
        "means messages are consumed again.",
        "Space, permissions and the state of the file system.",
        ("info STORE",),
        ("F33",),
        ("ConfigManager#persist", "SlaveSynchronize#syncDelayOffset"),
    ),
    Entry(
        "config.json-syntax",
        "problem",
        (
            "syntax error, expect {",
            "com.alibaba.fastjson.JSONException: {text}",
            "com.alibaba.fastjson2.JSONException: {text}",
        ),
        "JSON could not be parsed. Below a 'load … failed' line it is the reason why a configuration file is not used: "
        "'actual EOF' is a file that is cut short, zeros or garbage come from a power loss.",
        "The file that the line before names.",
        ("verify STORE",),
        ("F33",),
        ("ConfigManager#decode",),
    ),
    Entry(
        "config.data-version",
        "problem",
        (
            "load subGroup dataVersion failed{path}",
            "load topic metadata dataVersion failed{path}",
            "load consumer offset dataVersion failed {path}",
        ),
        "The JSON file could not be read while its content was to be taken over into RocksDB.",
        "The named file.",
        ("verify STORE",),
        ("F33", "F24"),
        ("TopicConfigManager#loadDataVersion", "SubscriptionGroupManager#loadDataVersion"),
        "5.3 and later",
    ),
    Entry(
        "config.delete-old-json",
        "problem",
        ("startup will exit",),
        "Taking over a JSON configuration into RocksDB failed; the broker does not start.",
        "The JSON file that the line names by its subject (topics, subscription groups, consumer offsets).",
        ("verify STORE",),
        ("F24", "F33"),
        ("RocksDBTopicConfigManager#merge", "RocksDBConsumerOffsetManager#merge"),
        "5.3 and later",
    ),
)
