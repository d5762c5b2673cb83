"""Files that are loaded: segments, queue files, configuration."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="load.length-mismatch",
        severity="problem",
        lines=(
            "{path}\t{size} length not matched message store config value",
            "{path} {size} length not matched message store config value",
        ),
        meaning=(
            "A file in a directory of segments has not the configured size, so the broker refuses to "
            "start (up to 4.4.0 it skipped the rest of the list and started). It is a stray file, a "
            "copy cut short, a file of size 0 left by a crash, or the configured size was changed."
        ),
        look=(
            "The size named: 0 is an unused file, a smaller one a copy that was cut short, another "
            "round size a changed mappedFileSizeCommitLog or mappedFileSizeConsumeQueue."
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F10", "F11", "F12"),
        source=("MappedFileQueue#load",),
    ),
    Entry(
        id="load.empty-file-deleted",
        severity="notice",
        lines=("{path} size is 0, auto delete. is_ok: {word}",),
        meaning=(
            "The last file of a directory had size 0, as a crash right after its creation leaves it, "
            "and was deleted. Nothing is lost. Earlier releases refuse to start here."
        ),
        look="Whether the name is a segment's: any empty file that sorts last is deleted.",
        incidents=("F12",),
        source=("MappedFileQueue#doLoad",),
        releases="5.1.2 and later",
    ),
    Entry(
        id="load.file-error",
        severity="problem",
        lines=("load file {path} error",),
        meaning=(
            "A file could not be loaded: its name is not a number, or it cannot be opened or mapped. A "
            "foreign name in the index directory is only passed over; anything else makes the broker "
            "refuse to start."
        ),
        look="The exception below; the name and permissions of the file.",
        next=("info STORE",),
        incidents=("F12",),
        source=("MappedFileQueue#doLoad", "IndexService#load"),
    ),
    Entry(
        id="load.not-adjacent",
        severity="problem",
        lines=(
            (
                "[BUG]The mappedFile queue's data is damaged, the adjacent mappedFile's offset don't match. "
                "pre file {path}, cur file {other_path}"
            ),
        ),
        meaning=(
            "Two neighbouring files are not one file size apart: a segment is missing in between, the "
            "same one lies in two directories, or the configured size is not that of the files. The "
            "broker continues and reads wrong places."
        ),
        look="The names: which segment is missing, or whether both are the same.",
        next=("info STORE", "verify STORE"),
        incidents=("F09", "F11", "F13"),
        source=("MappedFileQueue#checkSelf",),
    ),
    Entry(
        id="load.offset-not-matched",
        severity="problem",
        lines=(
            (
                "Offset not matched. Request offset: {physical_offset}, firstOffset: {min_offset}, "
                "lastOffset: {max_offset}, mappedFileSize: {size}, mappedFiles count: {count}"
            ),
        ),
        meaning=(
            "An offset was asked for that lies in none of the files: they are not contiguous, have "
            "another size than configured, or the offset belongs to another store or to data that is "
            "deleted. Offsets of queues (bytes in the queue) are reported with the same line."
        ),
        look=(
            "(lastOffset - firstOffset) / mappedFileSize against the number of files: not equal means a "
            "gap. A request below firstOffset is expired data."
        ),
        next=("info STORE", "show STORE {physical_offset}"),
        incidents=("F09", "F11", "F35"),
        source=("MappedFileQueue#findMappedFileByOffset",),
    ),
    Entry(
        id="load.file-ok",
        severity="normal",
        lines=("load /{path} OK", "load index file OK, {path}", "load {path} OK"),
        meaning="A file was loaded.",
        look="Nothing.",
        source=("MappedFileQueue#doLoad", "IndexService#load", "ConfigManager#load"),
    ),
    Entry(
        id="config.primary-unusable",
        severity="problem",
        lines=("load {path} failed, and try to load backup file",),
        meaning=(
            "A configuration file is damaged and its .bak is taken instead. The damaged file is "
            "overwritten at the next persist, within seconds. If there is no .bak, or an empty one, the "
            "broker starts with an empty table."
        ),
        look=(
            "The size of the file and its .bak; save both before the broker runs on. Zeros come from a "
            "power loss."
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F33",),
        source=("ConfigManager#load",),
    ),
    Entry(
        id="config.backup-unusable",
        severity="problem",
        lines=("load {path} Failed",),
        meaning=(
            "The .bak of a configuration file cannot be read either: the broker refuses to start. (For "
            "delayOffset.json of 4.x it is the store that does not load.)"
        ),
        look="The file and its .bak; what is left in them can be merged by hand.",
        next=("info STORE", "verify STORE"),
        incidents=("F33",),
        source=("ConfigManager#loadBak",),
    ),
    Entry(
        id="config.persist-failed",
        severity="problem",
        lines=("persist file {path} exception", "Persist file Exception, {path}"),
        meaning=(
            "A configuration file could not be written; offsets and topics in memory are newer than on "
            "disk. A crash now means messages are consumed again."
        ),
        look="Space, permissions and the state of the file system.",
        next=("info STORE",),
        incidents=("F33",),
        source=("ConfigManager#persist", "SlaveSynchronize#syncDelayOffset"),
    ),
    Entry(
        id="config.json-syntax",
        severity="problem",
        lines=(
            "syntax error, expect {",
            "com.alibaba.fastjson.JSONException: {text}",
            "com.alibaba.fastjson2.JSONException: {text}",
        ),
        meaning=(
            "JSON could not be parsed. Below a 'load … failed' line it is the reason why a "
            "configuration file is not used: 'actual EOF' is a file that is cut short, zeros or garbage "
            "come from a power loss."
        ),
        look="The file that the line before names.",
        next=("verify STORE",),
        incidents=("F33",),
        source=("ConfigManager#decode",),
    ),
    Entry(
        id="config.data-version",
        severity="problem",
        lines=(
            "load subGroup dataVersion failed{path}",
            "load topic metadata dataVersion failed{path}",
            "load consumer offset dataVersion failed {path}",
        ),
        meaning="The JSON file could not be read while its content was to be taken over into RocksDB.",
        look="The named file.",
        next=("verify STORE",),
        incidents=("F33", "F24"),
        source=("TopicConfigManager#loadDataVersion", "SubscriptionGroupManager#loadDataVersion"),
        releases="5.3 and later",
    ),
    Entry(
        id="config.delete-old-json",
        severity="problem",
        lines=("startup will exit",),
        meaning="Taking over a JSON configuration into RocksDB failed; the broker does not start.",
        look=(
            "The JSON file that the line names by its subject (topics, subscription groups, consumer "
            "offsets)."
        ),
        next=("verify STORE",),
        incidents=("F24", "F33"),
        source=("RocksDBTopicConfigManager#merge", "RocksDBConsumerOffsetManager#merge"),
        releases="5.3 and later",
    ),
)
