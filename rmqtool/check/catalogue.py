"""Every code that a finding can have. Codes are stable: scripts filter by them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`error`: data is damaged or lost.

    `warning`: something a broker would trip over. `note`: worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """One entry: severity, sentence (with facts of the finding in braces), what to do next."""

    code: str
    severity: Severity
    sentence: str
    hint: str

    @property
    def anchor(self) -> str:
        """Where the docs speak of it: docs/findings.md#anchor."""
        return self.code.lower()


E = Severity.ERROR
W = Severity.WARNING
N = Severity.NOTE

_SHOW = "rmqtool show STORE OFFSET shows the record with its unit and index items"

_ENTRIES = (
    # directory layout
    Code("DIR-UNKNOWN", N, "no file of RocketMQ's: {found}", "rmqtool info STORE lists it"),
    Code(
        "DIR-STRAY",
        W,
        "a file whose name is no offset lies among segments: {found}",
        "a broker does not start with it; move it away",
    ),
    Code(
        "DIR-EMPTY-FILE",
        W,
        "the file has no bytes",
        "4.x does not start with it, 5.x deletes it when it is the last",
    ),
    Code(
        "DIR-SIZE",
        W,
        "{found} bytes long, other files {expected}",
        "a broker with one configured size does not start",
    ),
    Code(
        "DIR-DIRECTORY",
        W,
        "a directory lies where {found} files belong",
        "4.x does not start with it in a commit log or queue, 5.x not with a number in index/",
    ),
    Code(
        "DIR-GAP",
        E,
        "no file covers offsets {expected} to {found}",
        "look for the missing file in backups and replicas",
    ),
    Code(
        "DIR-TWIN",
        E,
        "a second file begins at offset {expected}: {found}",
        "keep the one that holds the data",
    ),
    Code(
        "DIR-NO-LOG",
        E,
        "there is no commit log file, but {found} files of queues: a broker destroys them when it starts",
        "is the disk mounted, is it the right path? --commitlog DIR names another one",
    ),
    Code(
        "DIR-SETTING",
        W,
        "the settings say {expected} bytes a file, the {part} files have {found}",
        "a broker with these settings does not start",
    ),
    Code(
        "DIR-OVERLAP",
        E,
        "begins at {found}, before the file in front of it ends at {expected}",
        "see rmqtool info STORE",
    ),
    Code("DIR-UNREADABLE", E, "cannot be read: {found}", "copy the disk first; then try --safe-io"),
    # commit log
    Code(
        "CL-MAGIC",
        E,
        "no record begins here: magic {found}; {length} bytes are passed over",
        "rmqtool dump STORE goes on behind it",
    ),
    Code(
        "CL-SIZE",
        E,
        "a record's size is {found}, which cannot be; {length} bytes are passed over",
        "rmqtool show STORE OFFSET shows where its check fails",
    ),
    Code(
        "CL-LENGTH",
        E,
        "the {part} is {found}, which does not fit the record; {length} bytes are passed over",
        "rmqtool show STORE OFFSET shows where its check fails",
    ),
    Code(
        "CL-ZERO",
        E,
        "{length} bytes are zero where records must be",
        "rmqtool dump STORE goes on behind them",
    ),
    Code(
        "CL-SHORT",
        E,
        "the file ends in the middle of a record, {length} bytes",
        "look for the whole file in backups and replicas",
    ),
    Code(
        "CL-BLANK",
        E,
        "a filler of {found} bytes hides records: a broker skips the rest of the segment here",
        "rmqtool dump STORE lists what lies behind it",
    ),
    Code(
        "CL-CRC",
        E,
        "the body does not have the CRC that the record says",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-CRC32",
        E,
        "the record does not have the CRC of its __CRC32# property",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-OFFSET",
        E,
        "the record says that it lies at {found}",
        "a broker dispatches the offset that the record says; was the file renamed or copied?",
    ),
    Code(
        "CL-TOPIC", E, "the topic holds bytes that no topic has", "rmqtool show STORE OFFSET shows the record"
    ),
    Code(
        "CL-NUL",
        E,
        "there is a zero byte in the {part}: the record was torn when it was written",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-BODY",
        E,
        "the body cannot be decompressed: {found}",
        "its CRC is right: the producer sent it like that; consumers fail on it",
    ),
    Code(
        "CL-INNER",
        E,
        "the body is no batch of messages: {found}",
        "rmqtool dump STORE --unwrap lists the messages before the break",
    ),
    Code(
        "CL-INNER-COUNT",
        E,
        "the batch holds {found} messages, its property {part} says {expected}",
        "queue offsets behind the batch do not fit; rmqtool dump STORE --unwrap lists the messages",
    ),
    Code(
        "CL-INNER-FIELD",
        W,
        "{part} in the batch is {found}, by the content {expected}",
        "RocketMQ's decoder does not look at it; others may",
    ),
    Code(
        "CL-PROPERTY-SPLIT",
        N,
        "a property's value holds the separator 0x01",
        "releases up to 4.9.0 drop such a property, later ones keep it",
    ),
    Code(
        "CL-PROPERTY-TWICE", N, "a property is given twice", "the last one counts; rmqtool show STORE OFFSET"
    ),
    Code("CL-UTF8", W, "the properties are not UTF-8", "rmqtool show STORE OFFSET shows the record"),
    Code(
        "CL-PROPERTIES",
        N,
        "the properties hold a piece that Java drops",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-TIME",
        W,
        "the store time {found} is days away from that of its neighbours",
        "searches by time go wrong around it",
    ),
    Code(
        "CL-BLANK-LENGTH",
        W,
        "the filler says {found} bytes, {expected} are left in the file",
        "brokers look at its magic only",
    ),
    Code(
        "CL-BLANK-REST",
        N,
        "bytes behind the filler's header are not zero",
        "a reused buffer or a truncation leaves them; nothing reads them",
    ),
    Code(
        "CL-STALE",
        N,
        "{found} records of an earlier life lie behind the end",
        "a truncation does not clear what it cuts off",
    ),
    Code(
        "CL-TAIL",
        W,
        "bytes behind the last record are neither zero nor a record",
        "a broker cuts them off when it starts",
    ),
    # consume queues
    Code(
        "CQ-HOLE",
        E,
        "{found} units are zero in front of others",
        "a broker cuts the queue here if it lies in the last three files",
    ),
    Code(
        "CQ-INVALID",
        E,
        "{found} units have a negative offset or no size",
        "a broker cuts the queue here if it lies in the last three files",
    ),
    Code(
        "CQ-ORDER",
        E,
        "{found} units point in front of one before them",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "CQ-PRE-BLANK",
        W,
        "{found} filler units stand behind units of messages",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "CQ-MISSING-FILE",
        E,
        "no file of the queue covers {expected} to {found}",
        "look for the missing file in backups",
    ),
    Code("CQ-SIZE", E, "the unit says {found} bytes, the record has {expected}", _SHOW),
    Code(
        "CQ-TAGS",
        E,
        "the unit's tags code is {found}, that of the record {expected}",
        "consumers with a tag filter miss or get this message wrongly",
    ),
    Code(
        "CQ-EXT",
        E,
        "the extension address {found} leads to no unit",
        "the tags code of this message is lost to filters",
    ),
    Code(
        "CQ-SHIFT",
        E,
        "units from slot {found} on hold the records of slot {expected} on",
        "consumers get wrong offsets from here on",
    ),
    Code("CQ-DANGLING", E, "the unit points to no record", "rmqtool show STORE OFFSET shows what lies there"),
    Code("CQ-FOREIGN", E, "the unit points to a record of {found}", _SHOW),
    Code("CQ-TRANSACTION", E, "the unit points to a prepared or rolled back record, which has none", _SHOW),
    Code(
        "CQ-BEHIND",
        W,
        "the queue ends before the log does: {found} records have no unit yet",
        "a start with the queues behind may not build all of them",
    ),
    # batch consume queues
    Code(
        "BCQ-HOLE",
        E,
        "{found} batch units are zero in front of others",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-INVALID",
        E,
        "{found} batch units have no offset, size or count",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-ORDER",
        E,
        "{found} batch units point in front of one before them",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-PRE-BLANK",
        W,
        "{found} filler units stand behind units of messages",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-DANGLING",
        E,
        "the batch unit points to no record",
        "rmqtool show STORE OFFSET shows what lies there",
    ),
    Code("BCQ-FOREIGN", E, "the batch unit points to a record of {found}", _SHOW),
    Code("BCQ-TRANSACTION", E, "the batch unit points to a prepared or rolled back record", _SHOW),
    Code("BCQ-FIELD", E, "the batch unit's {part} is {found}, the record says {expected}", _SHOW),
    # cross checks
    Code(
        "X-GHOST",
        W,
        "{found} records have no unit at their slot: they are stored and no consumer gets them",
        _SHOW,
    ),
    Code(
        "X-MORE",
        W,
        "{found} more records of this queue have no unit at their slot; the first 4,096 runs are listed",
        "rmqtool dump STORE --topic TOPIC lists the records",
    ),
    Code(
        "X-ROCKSDB",
        N,
        "the queues lie in RocksDB: records are not compared with their units",
        "rmqtool dump STORE lists the records",
    ),
    Code(
        "X-NO-QUEUE",
        N,
        "{found} records of a topic without a queue, as after its deletion",
        "rmqtool dump STORE --topic TOPIC lists them",
    ),
    # checkpoint, abort, lock
    Code(
        "CP-ABORT",
        N,
        "the last run did not end, or has not ended yet{found}",
        "the next start recovers; copies of a running store look the same",
    ),
    Code(
        "CP-ABORT-DIRECTORY",
        W,
        "abort is a directory",
        "every start recovers as after a crash, and 5.x then fails; remove it",
    ),
    Code(
        "CP-BEHIND",
        N,
        "{part} is {found}, the last record was stored at {expected}",
        "a start after a crash reads the log from there on",
    ),
    Code(
        "CP-CONFIRM",
        N,
        "{part} is {found}, the log ends at {expected}",
        "matters in controller and duplication mode only",
    ),
    Code("CP-DIRECTORY", W, "checkpoint is a directory", "a broker does not start; remove it"),
    Code(
        "CP-FUTURE",
        N,
        "{part} is {found}, later than the last record, {expected}",
        "a start after a crash looks at the last segment only",
    ),
    Code("CP-LOCK", N, "a broker holds the store{found}", "the end of everything may move while it is read"),
    Code("CP-LOCK-DIRECTORY", W, "lock is a directory", "a broker does not start; remove it"),
    Code(
        "CP-MISSING",
        N,
        "there is no checkpoint",
        "it counts as zeros: a start after a crash reads the whole log",
    ),
    Code(
        "CP-NEGATIVE", N, "{part} is {found}", "it counts as zero: a start after a crash reads the whole log"
    ),
    Code(
        "CP-REST",
        N,
        "bytes behind the fields of the checkpoint are not zero",
        "no known release writes there",
    ),
    Code(
        "CP-SIZE",
        N,
        "the checkpoint is {found} bytes long instead of {expected}",
        "a broker reads what is missing as zeros and ignores the rest",
    ),
    Code(
        "CP-UNREADABLE",
        W,
        "the checkpoint cannot be read: {found}",
        "copy the disk first; then try --safe-io",
    ),
    Code("CP-ZERO", N, "{part} is zero", "a start after a crash reads the whole log"),
    # configuration
    Code(
        "CFG-BAK",
        N,
        "the backup is of no use: {found}",
        "the file itself is fine; the next change writes a new backup",
    ),
    Code(
        "CFG-LOST",
        E,
        "the file cannot be loaded ({found}) and has no backup: a broker starts with an empty table",
        "keep a copy before a broker starts; rmqtool dump of the file shows what is in it",
    ),
    Code("CFG-NO-QUEUE", N, "no queue on disk: {found}", "topics without messages have none"),
    Code(
        "CFG-NO-TOPIC",
        N,
        "topic {topic} has {found} queues on disk and no entry",
        "nobody can read them; a deleted topic is cleaned up later",
    ),
    Code(
        "CFG-NOTHING",
        E,
        "a broker loads an empty table ({found}) and does not try .bak, which offers {expected}",
        "keep a copy of both before a broker starts",
    ),
    Code("CFG-ODD", N, "the file loads, but {found}", "no broker writes it so"),
    Code(
        "CFG-OFFSET-BELOW",
        N,
        "{part}: the offset {found} lies below the queue, which begins at {expected}",
        "consumers begin at the queue's start",
    ),
    Code(
        "CFG-OFFSET-BEYOND",
        W,
        "{part}: the offset {found} lies beyond the queue, which ends at {expected}",
        "consumers wait or start anew; was the queue cut?",
    ),
    Code(
        "CFG-OFFSET-QUEUE",
        N,
        "{part}: the offset {found} is of a queue that is not there",
        "rmqtool info STORE lists the queues",
    ),
    Code(
        "CFG-OFFSET-TOPIC",
        N,
        "{part}: the offset {found} is of a topic that is not there",
        "deleted topics leave such offsets",
    ),
    Code("CFG-OFFSET-VALUE", W, "{part}: {found} is no offset", "a broker may refuse the whole file"),
    Code(
        "CFG-PERM",
        N,
        "topic {topic} has no {expected} permission (perm {found})",
        "mqadmin updateTopicPerm changes it, if nobody meant it so",
    ),
    Code(
        "CFG-PRIMARY",
        W,
        "the file cannot be loaded ({found}); a broker takes the older .bak: {expected}",
        "keep a copy of both before a broker starts",
    ),
    Code(
        "CFG-READ-MORE",
        N,
        "{expected} read queues and {found} write queues",
        "usual while a topic is being shrunk",
    ),
    Code(
        "CFG-REFUSED",
        E,
        "neither the file ({found}) nor its backup ({expected}) can be loaded: a broker does not start",
        "keep a copy of both; rmqtool dump of the file shows what is in it",
    ),
    Code(
        "CFG-UNREACHABLE",
        N,
        "{found} messages of {topic} in a queue that consumers are not told of (readQueueNums {expected})",
        "raise readQueueNums to reach them",
    ),
    Code("CFG-UNREADABLE", E, "the file cannot be read: {found}", "copy the disk first; then try --safe-io"),
    Code(
        "CFG-WRITE-MORE",
        N,
        "{found} write queues and {expected} read queues",
        "messages in the last ones reach no consumer",
    ),
    # index files
    Code(
        "IDX-ABSENT",
        W,
        "no index file holds the keys of {found} records",
        "queries by key find nothing; with messageIndexEnable=false give --store-config",
    ),
    Code(
        "IDX-AHEAD",
        W,
        "the index ends at offset {found}, behind the end of the log, {expected}",
        "a broker indexes no message until the log has grown past it",
    ),
    Code(
        "IDX-BEHIND",
        W,
        "the index ends before the log does: the keys of {found} records are not in it",
        "queries by key do not find them",
    ),
    Code(
        "IDX-BEYOND-LOG",
        W,
        "{found} items point behind the end of the log",
        "records that were there have been cut off",
    ),
    Code(
        "IDX-CHAIN",
        E,
        "the item's prev is {found}, the item before it in its slot {expected}",
        "older keys of this slot are not found; rmqtool dump of the file shows the item",
    ),
    Code(
        "IDX-COUNT",
        E,
        "indexCount is {found}, by the items it should be {expected}",
        "a broker reads and writes items by it",
    ),
    Code(
        "IDX-CYCLE",
        E,
        "the item's prev is {found}, which is not older: a query that follows it may never end",
        "move the file away while the broker is down",
    ),
    Code(
        "IDX-DANGLING",
        E,
        "{found} items point to no record",
        "rmqtool show STORE OFFSET shows what lies there",
    ),
    Code(
        "IDX-DOUBLE",
        N,
        "{found} keys of the record stand in the index twice",
        "a start dispatched the record again; queries find it twice",
    ),
    Code("IDX-EMPTY", N, "the index file holds no item", "rmqtool info STORE shows how much disk it takes"),
    Code(
        "IDX-GEOMETRY", N, "not checked: {found}", "give maxHashSlotNum and maxIndexNum with --store-config"
    ),
    Code("IDX-HASH", E, "the item's hash is {found}, the record has {expected}", _SHOW),
    Code(
        "IDX-HEADER",
        W,
        "{part} in the header is {found}, by the content {expected}",
        "queries use the header's times to choose files",
    ),
    Code(
        "IDX-HEADER-LOST",
        W,
        "{found} fields of the header disagree with the content",
        "queries use the header's times to choose files, and a broker continues by its count",
    ),
    Code("IDX-MISSING", W, "keys of {found} records are not in the index", "queries by key do not find them"),
    Code(
        "IDX-MORE",
        E,
        "{found} further findings {part} of this file are not listed",
        "rmqtool dump of the file shows its items",
    ),
    Code("IDX-OFFSET", E, "the item points to {found}, its key belongs to the record at {expected}", _SHOW),
    Code(
        "IDX-SIZE",
        W,
        "the index file is {found} bytes long, {expected} with the geometry of its content or siblings",
        "a broker maps it with the length that is configured",
    ),
    Code(
        "IDX-SLOT",
        E,
        "the slot holds {found}, the newest item of its chain is {expected}",
        "keys of this slot are not found",
    ),
    Code(
        "IDX-TIME",
        W,
        "the item's timeDiff is {found} s, by the record's store time {expected} s",
        "queries for a time range miss it",
    ),
    Code(
        "IDX-UNREADABLE",
        E,
        "the index file cannot be read: {found}",
        "copy the disk first; then try --safe-io",
    ),
)

CATALOGUE: dict[str, Code] = {entry.code: entry for entry in _ENTRIES}
