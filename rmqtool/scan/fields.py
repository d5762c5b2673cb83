"""The integer row that a kernel writes for every record, and the codes it answers with.

A kernel fills one int64 row a record; strings stay where they are and are named by position and length. Byte
offsets inside a record are derived from the schemas in `formats`, so a kernel cannot disagree with the
declared format.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from functools import reduce
from operator import or_

from formats.commitlog import HEADERS, SysFlag
from formats.primitives import offset_of, sizeof
from formats.properties import DELAY, INNER_BASE, INNER_NUM
from formats.tags_code import SCHEDULE_TOPIC


class Field(IntEnum):
    """Columns of the row matrix. Positions are bytes from the start of the segment.

    Those from TAGS_POSITION on are written with `Check.TEXT` only; a length of -1 means that the property is
    absent.
    """

    POSITION = 0
    STORE_SIZE = 1
    MAGIC = 2
    BODY_CRC = 3
    QUEUE_ID = 4
    FLAG = 5
    QUEUE_OFFSET = 6
    STORED_PHYSICAL_OFFSET = 7
    SYS_FLAG = 8
    BORN_TIMESTAMP = 9
    STORE_TIMESTAMP = 10
    RECONSUME_TIMES = 11
    PREPARED_TRANSACTION_OFFSET = 12
    BODY_POSITION = 13
    BODY_LENGTH = 14
    TOPIC_POSITION = 15
    TOPIC_LENGTH = 16
    PROPERTIES_POSITION = 17
    PROPERTIES_LENGTH = 18
    CRC_STATE = 19
    ISSUES = 20
    TAGS_POSITION = 21
    TAGS_LENGTH = 22
    KEYS_POSITION = 23
    KEYS_LENGTH = 24
    UNIQ_KEY_POSITION = 25
    UNIQ_KEY_LENGTH = 26
    PROPERTY_COUNT = 27


ROW_WIDTH = len(Field)

TEXTS = (
    Field.BODY_POSITION,
    Field.PROPERTIES_POSITION,
    Field.TAGS_POSITION,
    Field.KEYS_POSITION,
    Field.UNIQ_KEY_POSITION,
)
"""what can be copied into columns together"""


class CrcState(IntEnum):
    """`ABSENT`: no body, and the broker checks none. `UNCHECKED`: the caller asked for no CRC."""

    ABSENT = 0
    OK = 1
    BAD = 2
    UNCHECKED = 3


class Issue(IntFlag):
    """What the broker does not check in a record that it accepts."""

    OFFSET = 1
    """the stored physical offset is not where the record lies"""
    TOPIC_UTF8 = 2
    TOPIC_CHARACTERS = 4
    """a byte that topic validators refuse (`TopicValidator`) and brokers do not write, or an empty topic"""
    TOPIC_NUL = 8
    PROPERTIES_UTF8 = 16
    PROPERTIES_SYNTAX = 32
    """a non-empty segment that Java's decoder drops"""
    PROPERTIES_NUL = 64
    SYS_FLAG = 128
    """a flag of no known release; this and what follows are set with `Check.CONTENT` only"""
    COMMAND = 256
    """the body begins with the header of a remoting command (`RemotingCommand#encode`)"""
    SEPARATOR = 512
    """the value of TAGS holds the separator that follows a name"""
    SEALED = 1024
    """the record ends in `__CRC32#`, which is not a fault"""
    CRC32 = 2048
    """and the number there is not that of the record in front of it"""
    NEGATIVE = 4096
    """a length of body or properties below zero, which no broker writes and readers take for zero"""
    NUMBER = 8192
    """a property that a broker reads as a number when it takes the record is not plainly one (`DIGITS_OF`)"""


TORN = Issue.TOPIC_NUL | Issue.TOPIC_UTF8 | Issue.PROPERTIES_NUL
"""Text that no broker writes: zero bytes, or a topic that is not UTF-8, which it encodes itself.

Properties of a client's batch are stored as they were sent, in whatever encoding
(`MessageExtEncoder#encode(MessageExtBatch)`).
"""


ODD = ~int(Issue.SEALED)
"""bits of `ISSUES` that are something to tell"""

SCHEDULED = SCHEDULE_TOPIC.encode()
"""topic of the records whose `DELAY` is read; the others are read of inner batches"""

DIGITS_OF = {f"{DELAY}\x01".encode(): 9, f"{INNER_NUM}\x01".encode(): 4, f"{INNER_BASE}\x01".encode(): 18}
"""how a property begins that is read as a number, and so many digits fit for certain"""

KNOWN_FLAGS = reduce(or_, map(int, SysFlag))

COMMAND_AT, COMMAND = 8, b'{"code":'
"""how a remoting command goes on behind its two lengths"""


class Check(IntFlag):
    """How much a kernel looks at, beyond the frame."""

    FRAME = 0
    CRC = 1
    TEXT = 2
    """topic characters, property syntax, UTF-8, and the places of TAGS, KEYS and UNIQ_KEY"""
    ALL = 3
    CONTENT = 4
    """with TEXT: what no reader of records needs to know and a verification tells (`Issue.SYS_FLAG`, …)"""
    VERIFY = 7
    SINGLE = 8
    """for `kernels.sound`, with TEXT: a record that is not one message of one queue has something to tell"""


class Stop(IntEnum):
    """Why a kernel stopped in front of `position`."""

    ROWS_FULL = 0
    NEED_MORE = 1
    """the window ends inside a record; `expected` says how many bytes from its start are wanted"""
    END = 2
    """exactly at the end of the file"""
    BLANK = 3
    ZERO = 4
    BAD_MAGIC = 5
    BAD_SIZE = 6
    EXCEEDS_FILE = 7
    BAD_BODY_LENGTH = 8
    BAD_TOPIC_LENGTH = 9
    BAD_PROPERTIES_LENGTH = 10
    SIZE_MISMATCH = 11
    """the fields add up to another total size: `CommitLog#checkMessageAndReturnSize` calls the record dead"""
    SHORT = 12
    """fewer bytes than a blank header are left in the file"""
    BLANK_LENGTH = 13
    """a blank header whose length does not reach the end of the file, with records behind it"""
    TORN = 14
    """bytes of a record, or of what may be one, of which others cannot be read; `scan.readable` says so"""


class EntryStop(IntEnum):
    """Why a kernel stopped in front of an entry of a replayable file."""

    ROWS_FULL = 0
    NEED_MORE = 1
    """the window ends inside an entry; `expected` says how many bytes from its start are wanted"""
    MARKER = 2
    """the length 0 of the end marker"""
    CUT = 3
    """the file ends inside an entry"""
    BAD_LENGTH = 4
    BAD_CRC = 5
    NO_RECORD = 6
    """the entry is whole, what it holds is not a record"""


LARGEST_RECORD = 1 << 30
"""bytes; a length of an entry beyond is taken for damage and not for a wish for memory"""


class Status(IntEnum):
    """Places in the int64 status array that every kernel fills."""

    COUNT = 0
    POSITION = 1
    STOP = 2
    EXPECTED = 3
    FOUND = 4


STATUS_WIDTH = len(Status)


class DispatchColumn(IntEnum):
    """Rows of the int64 matrix of records that want a unit (`kernels.dispatch.place`).

    `CODE` is the hash of the tags, `OWNER` the record's row in its run, `TIME` its store timestamp (ms).
    """

    PARTITION = 0
    SLOT = 1
    OFFSET = 2
    SIZE = 3
    CODE = 4
    OWNER = 5
    TIME = 6


class TopicColumn(IntEnum):
    """Columns of the int64 table of topics that messages go to (`kernels.encoding.prepare_rows`).

    FIXED: bytes of a record beside body, name and properties. NAME_AT, NAME_LENGTH: where the name lies among
    the names, in bytes. QUEUES: write queues, -1 for a topic that takes nothing. TURN: the next of them.
    """

    MAGIC = 0
    FIXED = 1
    NAME_AT = 2
    NAME_LENGTH = 3
    QUEUES = 4
    TURN = 5


class Refused(IntEnum):
    """What a message has that no store takes (`kernels.encoding.prepare_rows`)."""

    NOTHING = 0
    ILLEGAL = 1
    PROPERTIES_SIZE = 2


class Stretch(IntEnum):
    """Rows of the int64 matrix of stretches (`kernels.dispatch.stretch`).

    A stretch is records of one topic and queue, in log order, each with the queue offset behind that of the
    one before. OFFSET is the physical offset of the first.
    """

    PARTITION = 0
    SLOT = 1
    OFFSET = 2
    LAST_SLOT = 3
    LAST_OFFSET = 4


class Place(IntEnum):
    """Rows of an int64 table, a column a record: physical offsets of it and behind it, store time (ms)."""

    START = 0
    END = 1
    TIME = 2


class Sum(IntEnum):
    """Places in the int64 sums of a run of records (`kernels.sound`).

    START, END: position of the first and behind the last. KEYED: how many have keys for the index, and where
    the first of these begins and the last ends; of `sound_columns` only how many keys they have.
    """

    RECORDS = 0
    START = 1
    END = 2
    FIRST_TIME = 3
    LAST_TIME = 4
    KEYED = 5
    KEYED_START = 6
    KEYED_END = 7


class TopicSum(IntEnum):
    """Columns of the int64 sums by topic that a run of records adds up to (`kernels.tally`)."""

    MESSAGES = 0
    BYTES = 1
    BODY_BYTES = 2
    COMPRESSED = 3
    LARGEST = 4
    FIRST_TIMESTAMP = 5
    LAST_TIMESTAMP = 6


SIEVE_FACTOR = 0x9E3779B97F4A7C15
"""the top bits of a 32-bit hash times this are its place in a sieve, a bitmap of 2^n bits"""


class AppendState(IntEnum):
    """Places in the int64 state of a plain queue that is appended to (`kernels.building.append_units`).

    NEXT: slot of the next unit. KNOWN: end of the last record that has a unit, -1 at first. DOUBLED: records
    that got none because their slot was taken. MISPLACED: units at another slot than that of their record.
    SKIPPED: records that end in front of the last known one. REPEATED: 1 where a record whose slot is taken
    came behind the last unit.
    """

    NEXT = 0
    KNOWN = 1
    DOUBLED = 2
    MISPLACED = 3
    SKIPPED = 4
    REPEATED = 5


class IndexHeaderState(IntEnum):
    """Places in the int64 state of an index file that is built (`kernels.building.put_keys`).

    The fields of its header in their order, then whether `hash_slot_count` grows with every put, as it did
    before 4.7.1.
    """

    BEGIN_TIMESTAMP = 0
    END_TIMESTAMP = 1
    BEGIN_PHYSICAL_OFFSET = 2
    END_PHYSICAL_OFFSET = 3
    HASH_SLOT_COUNT = 4
    INDEX_COUNT = 5
    EVERY_PUT = 6


class QueueKeyColumn(IntEnum):
    """Columns of the int64 table of topics and queues that records go to. NAME: where its bytes begin."""

    QUEUE_ID = 0
    NAME = 1
    NAME_LENGTH = 2
    HASH = 3


class LookupRequest(IntEnum):
    """Places in the int64 question of `kernels.lookup.look_up`, behind which its arrays follow.

    What is known of the store: FILES, SEGMENTS: addresses of tables (`IndexColumn`, `SegmentColumn`) with so
    many rows, the newest index file first and segments in their order, the first of them number
    FIRST_SEGMENT; ALL_FILES: whether the table has all of the index. SLOTS: of each index file.

    What is asked: KEYS, LIMIT messages of each, stored from BEGIN to END (ms, both included). WRITTEN: number
    of the first item of the newest file that is in memory only. HIGH: physical offset up to which records are
    looked at. STEPS: items to look at for one key. ROOM: rows for what is found.

    The arrays: KEYS + 1 ends in the text, of the topic and behind it of each key; KEYS numbers of records
    found; ROOM rows of `FoundColumn`; the text.

    Also answered: ENDED, of how many files, the last of them included, a chain was followed to its end that
    may be one because the file was cut; MISSING: number of a segment whose bytes would have been needed, -1.
    """

    FILES = 0
    FILE_COUNT = 1
    ALL_FILES = 2
    SLOTS = 3
    SEGMENTS = 4
    SEGMENT_COUNT = 5
    FIRST_SEGMENT = 6
    SEGMENT_SIZE = 7
    ROOM = 8
    STEPS = 9
    WRITTEN = 10
    HIGH = 11
    BEGIN = 12
    END = 13
    LIMIT = 14
    ENDED = 15
    MISSING = 16
    KEYS = 17


class IndexColumn(IntEnum):
    """An index file for `kernels.lookup`: addresses of its slots and of its item 0; items it has room for.

    IN_MEMORY: whether the slots are int32 of this machine and not those of the file.
    """

    SLOTS = 0
    IN_MEMORY = 1
    ITEMS = 2
    ROOM = 3


class SegmentColumn(IntEnum):
    """A segment for `kernels.lookup`: physical offset, mapped bytes (0: not mapped), and their address."""

    BASE = 0
    LENGTH = 1
    ADDRESS = 2


class FoundColumn(IntEnum):
    """A record that `kernels.lookup` found: row of its segment, and where in it it begins and ends."""

    SEGMENT = 0
    START = 1
    STOP = 2


SUMMARISED = (
    Field.MAGIC,
    Field.SYS_FLAG,
    Field.CRC_STATE,
    Field.ISSUES,
    *(Field(position + 1) for position in TEXTS),
)
"""fields that have few values in a run, and lengths"""


class Summary(IntEnum):
    """Rows of figures of `kernels.columns.numbers`, each with a number for some fields."""

    LOWEST = 0
    HIGHEST = 1
    TOTAL = 2
    """of values above 0"""


class Alike(IntFlag):
    """What all records of a run may have in common."""

    TOPIC = 1
    BORN_HOST = 2
    STORE_HOST = 4
    ALL = TOPIC | BORN_HOST | STORE_HOST


class Spanned(IntEnum):
    """Places in the int64 question of `kernels.spans.span_units`.

    Asked: address of COUNT units of 20 bytes, and the bytes of a segment. Answered: BASE, where the segment
    begins that has the record of the first unit; LOWEST, BEHIND: where in the log the first of the records
    begins and the last one ends; LEAST, TOTAL: bytes of the smallest, and of all. Then follow begin and end
    of each record, counted from BASE.
    """

    UNITS = 0
    COUNT = 1
    SEGMENT_SIZE = 2
    BASE = 3
    LOWEST = 4
    BEHIND = 5
    LEAST = 6
    TOTAL = 7


_V4 = HEADERS[(False, False)]

OFF_TOTAL_SIZE = offset_of(_V4, "total_size")
OFF_MAGIC = offset_of(_V4, "magic")
OFF_BODY_CRC = offset_of(_V4, "body_crc")
OFF_QUEUE_ID = offset_of(_V4, "queue_id")
OFF_FLAG = offset_of(_V4, "flag")
OFF_QUEUE_OFFSET = offset_of(_V4, "queue_offset")
OFF_PHYSICAL_OFFSET = offset_of(_V4, "physical_offset")
OFF_SYS_FLAG = offset_of(_V4, "sys_flag")
OFF_BORN_TIMESTAMP = offset_of(_V4, "born_timestamp")
OFF_BORN_HOST = offset_of(_V4, "born_host")
OFF_STORE_TIMESTAMP = offset_of(_V4, "store_timestamp")
OFF_STORE_HOST = offset_of(_V4, "store_host")
OFF_RECONSUME_TIMES = offset_of(_V4, "reconsume_times")
OFF_PREPARED_TRANSACTION_OFFSET = offset_of(_V4, "prepared_transaction_offset")
OFF_BODY_LENGTH = offset_of(_V4, "body_length")
HEADER_SIZE = sizeof(_V4)
HOST_V4_SIZE = OFF_STORE_TIMESTAMP - OFF_BORN_HOST
HOST_V6_EXTRA = sizeof(HEADERS[(True, False)]) - HEADER_SIZE
"""what one IPv6 host adds; `tests/scan` holds all four declared layouts against this one number"""
