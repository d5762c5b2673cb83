"""numba kernels over commit log bytes. `kernels_python` is the twin with the same functions.

Every kernel takes a window of a segment (`buf`, uint8), where in the segment it begins (`origin`) and how long the
segment is (`file_size`), releases the GIL, writes int64 rows (`fields.Field`) and an int64 status (`fields.Status`).
No kernel reads outside `buf`, whatever the bytes say.
"""

from __future__ import annotations

import sys

import llvmlite.ir as ir
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from rmqtool.scan import fields as f
from rmqtool.scan.crc import CRC_MASK, ISAL_SYMBOL, load_isal_symbol
from rmqtool.scan.legal import TOPIC_BYTES

HAVE_ISAL = load_isal_symbol()

_uncached_said = False


def _kernel(**options):  # type: ignore[no-untyped-def]
    """`njit` with the disk cache where one can be written; without it the kernel compiles anew in each process."""

    def wrap(function):  # type: ignore[no-untyped-def]
        global _uncached_said
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            if not _uncached_said:
                _uncached_said = True
                print("rmqtool: no writable cache directory, compiling for this run only", file=sys.stderr)
            return njit(nogil=True, **options)(function)

    return wrap


def _load(bits: int, swap: bool):  # type: ignore[no-untyped-def]
    """An unaligned load of `bits` at an address, sign extended to int64 when byte-swapped (big-endian field)."""
    result = types.int64 if swap else types.uint64

    @intrinsic
    def load(typing_context, address):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            integer = ir.IntType(bits)
            value = builder.load(builder.inttoptr(arguments[0], integer.as_pointer()))
            value.align = 1
            if swap and bits > 8:
                value = builder.bswap(value)
            if bits == 64:
                return value
            return builder.sext(value, ir.IntType(64)) if swap else builder.zext(value, ir.IntType(64))

        return result(types.int64), build

    return load


_be64 = _load(64, True)
_be32 = _load(32, True)
_be16 = _load(16, True)
_i8 = _load(8, True)
_u64 = _load(64, False)
_u32 = _load(32, False)
_u8 = _load(8, False)


@intrinsic
def _trailing_zeros(typing_context, value):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), build


@intrinsic
def _popcount(typing_context, value):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


def _vector64(builder, address):  # type: ignore[no-untyped-def]
    vector = ir.VectorType(ir.IntType(8), 64)
    value = builder.load(builder.inttoptr(address, vector.as_pointer()))
    value.align = 1
    return value


@intrinsic
def _equal64(typing_context, address, byte):  # type: ignore[no-untyped-def]
    """Bit k is set where byte k of the 64 at `address` equals `byte`."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        value = _vector64(builder, arguments[0])
        first = builder.insert_element(ir.Constant(value.type, ir.Undefined), arguments[1], ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(first, ir.Constant(value.type, ir.Undefined), lanes)
        return builder.bitcast(builder.icmp_unsigned("==", value, wanted), ir.IntType(64))

    return types.uint64(types.int64, types.uint8), build


@intrinsic
def _illegal64(typing_context, address):  # type: ignore[no-untyped-def]
    """Bit k is set where byte k of the 64 at `address` may not stand in a topic (`legal.TOPIC_CHARACTERS`)."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        value = _vector64(builder, arguments[0])

        def splat(byte):  # type: ignore[no-untyped-def]
            return ir.Constant(value.type, [byte] * 64)

        letter = builder.sub(builder.or_(value, splat(0x20)), splat(ord("a")))
        legal = builder.icmp_unsigned("<", letter, splat(26))
        digit = builder.sub(value, splat(ord("0")))
        legal = builder.or_(legal, builder.icmp_unsigned("<", digit, splat(10)))
        for character in b"%|_-":
            legal = builder.or_(legal, builder.icmp_unsigned("==", value, splat(character)))
        return builder.not_(builder.bitcast(legal, ir.IntType(64)))

    return types.uint64(types.int64), build


@intrinsic
def _high64(typing_context, address):  # type: ignore[no-untyped-def]
    """Bit k is set where byte k of the 64 at `address` is not ASCII."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        value = _vector64(builder, arguments[0])
        zero = ir.Constant(value.type, [0] * 64)
        return builder.bitcast(builder.icmp_signed("<", value, zero), ir.IntType(64))

    return types.uint64(types.int64), build


if HAVE_ISAL:
    _isal = types.ExternalFunction(ISAL_SYMBOL, types.uint32(types.uint32, types.int64, types.uint64))

    @_kernel(forceinline=True)
    def crc_at(address, length):  # type: ignore[no-untyped-def]
        """Masked CRC-32 of `length` bytes at `address`."""
        return np.int64(_isal(np.uint32(0), address, np.uint64(length))) & CRC_MASK

else:
    _table = np.zeros(256, np.uint32)
    for _i in range(256):
        _value = _i
        for _ in range(8):
            _value = (_value >> 1) ^ (0xEDB88320 if _value & 1 else 0)
        _table[_i] = _value
    CRC_TABLE = _table

    @_kernel()
    def crc_at(address, length):  # type: ignore[no-untyped-def]
        """Masked CRC-32 of `length` bytes at `address`."""
        crc = np.uint32(0xFFFFFFFF)
        for i in range(length):
            crc = CRC_TABLE[(crc ^ np.uint32(_u8(address + i))) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        return np.int64(crc ^ np.uint32(0xFFFFFFFF)) & CRC_MASK


_TAGS = np.uint64(int.from_bytes(b"TAGS", "little"))
_KEYS = np.uint64(int.from_bytes(b"KEYS", "little"))
_UNIQ_KEY = np.uint64(int.from_bytes(b"UNIQ_KEY", "little"))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_NONE = np.uint64(0)

_END = int(f.Stop.END)
_SHORT = int(f.Stop.SHORT)
_NEED_MORE = int(f.Stop.NEED_MORE)
_BLANK = int(f.Stop.BLANK)
_ZERO = int(f.Stop.ZERO)
_BAD_MAGIC = int(f.Stop.BAD_MAGIC)
_BAD_SIZE = int(f.Stop.BAD_SIZE)
_EXCEEDS_FILE = int(f.Stop.EXCEEDS_FILE)
_BAD_BODY = int(f.Stop.BAD_BODY_LENGTH)
_BAD_TOPIC = int(f.Stop.BAD_TOPIC_LENGTH)
_BAD_PROPERTIES = int(f.Stop.BAD_PROPERTIES_LENGTH)
_SIZE_MISMATCH = int(f.Stop.SIZE_MISMATCH)
_ROWS_FULL = int(f.Stop.ROWS_FULL)
_ACCEPTED = -1
_ODD = -1

_CHECK_CRC = int(f.Check.CRC)
_CHECK_TEXT = int(f.Check.TEXT)
_CRC_ABSENT = int(f.CrcState.ABSENT)
_CRC_OK = int(f.CrcState.OK)
_CRC_BAD = int(f.CrcState.BAD)
_CRC_UNCHECKED = int(f.CrcState.UNCHECKED)

_ISSUE_OFFSET = int(f.Issue.OFFSET)
_ISSUE_TOPIC_UTF8 = int(f.Issue.TOPIC_UTF8)
_ISSUE_TOPIC_CHARACTERS = int(f.Issue.TOPIC_CHARACTERS)
_ISSUE_TOPIC_NUL = int(f.Issue.TOPIC_NUL)
_ISSUE_PROPERTIES_UTF8 = int(f.Issue.PROPERTIES_UTF8)
_ISSUE_PROPERTIES_SYNTAX = int(f.Issue.PROPERTIES_SYNTAX)
_ISSUE_PROPERTIES_NUL = int(f.Issue.PROPERTIES_NUL)

_POSITION = int(f.Field.POSITION)
_STORE_SIZE = int(f.Field.STORE_SIZE)
_MAGIC = int(f.Field.MAGIC)
_BODY_CRC = int(f.Field.BODY_CRC)
_QUEUE_ID = int(f.Field.QUEUE_ID)
_FLAG = int(f.Field.FLAG)
_QUEUE_OFFSET = int(f.Field.QUEUE_OFFSET)
_STORED_OFFSET = int(f.Field.STORED_PHYSICAL_OFFSET)
_SYS_FLAG = int(f.Field.SYS_FLAG)
_BORN_TIMESTAMP = int(f.Field.BORN_TIMESTAMP)
_STORE_TIMESTAMP = int(f.Field.STORE_TIMESTAMP)
_RECONSUME = int(f.Field.RECONSUME_TIMES)
_PREPARED = int(f.Field.PREPARED_TRANSACTION_OFFSET)
_BODY_POSITION = int(f.Field.BODY_POSITION)
_BODY_LENGTH = int(f.Field.BODY_LENGTH)
_TOPIC_POSITION = int(f.Field.TOPIC_POSITION)
_TOPIC_LENGTH = int(f.Field.TOPIC_LENGTH)
_PROPERTIES_POSITION = int(f.Field.PROPERTIES_POSITION)
_PROPERTIES_LENGTH = int(f.Field.PROPERTIES_LENGTH)
_CRC_STATE = int(f.Field.CRC_STATE)
_ISSUES = int(f.Field.ISSUES)
_TAGS_POSITION = int(f.Field.TAGS_POSITION)
_KEYS_POSITION = int(f.Field.KEYS_POSITION)
_UNIQ_POSITION = int(f.Field.UNIQ_KEY_POSITION)
_PROPERTY_COUNT = int(f.Field.PROPERTY_COUNT)

_OFF_BODY_LENGTH = f.OFF_BODY_LENGTH
_OFF_SYS_FLAG = f.OFF_SYS_FLAG
_HEADER_SIZE = f.HEADER_SIZE
_V6_EXTRA = f.HOST_V6_EXTRA
_OFF_BODY_CRC = f.OFF_BODY_CRC
_OFF_QUEUE_ID = f.OFF_QUEUE_ID
_OFF_FLAG = f.OFF_FLAG
_OFF_QUEUE_OFFSET = f.OFF_QUEUE_OFFSET
_OFF_PHYSICAL_OFFSET = f.OFF_PHYSICAL_OFFSET
_OFF_BORN_TIMESTAMP = f.OFF_BORN_TIMESTAMP
_OFF_STORE_TIMESTAMP = f.OFF_STORE_TIMESTAMP
_OFF_RECONSUME = f.OFF_RECONSUME_TIMES
_OFF_PREPARED = f.OFF_PREPARED_TRANSACTION_OFFSET
_MIN_BLANK = END_FILE_MIN_BLANK_LENGTH


@_kernel()
def utf8_ok(address, length):  # type: ignore[no-untyped-def]
    """Is it well-formed UTF-8? (What Java would decode without U+FFFD.)"""
    i = 0
    while i < length:
        a = _u8(address + i)
        if a < 0x80:
            i += 1
            continue
        if a < 0xC2 or a > 0xF4:
            return False
        n = 1 if a < 0xE0 else (2 if a < 0xF0 else 3)
        if i + n >= length:
            return False
        b = _u8(address + i + 1)
        low, high = 0x80, 0xBF
        if a == 0xE0:
            low = 0xA0
        elif a == 0xED:
            high = 0x9F
        elif a == 0xF0:
            low = 0x90
        elif a == 0xF4:
            high = 0x8F
        if b < low or b > high:
            return False
        for k in range(2, n + 1):
            c = _u8(address + i + k)
            if c < 0x80 or c > 0xBF:
                return False
        i += n + 1
    return True


@_kernel(forceinline=True)
def _topic_issues(address, length, room):  # type: ignore[no-untyped-def]
    """Issues of a topic except ill-formed UTF-8; `room` bytes may be read from `address` on."""
    if length == 0:
        return _ISSUE_TOPIC_CHARACTERS
    illegal = _NONE
    zeros = _NONE
    for i in range(0, length, 64):
        left = length - i
        keep = _ALL if left >= 64 else (_ONE << np.uint64(left)) - _ONE
        if room - i >= 64:
            illegal |= _illegal64(address + i) & keep
            zeros |= _equal64(address + i, np.uint8(0)) & keep
        else:
            for k in range(min(64, left)):
                byte = _u8(address + i + k)
                illegal |= np.uint64(not TOPIC_BYTES[byte])
                zeros |= np.uint64(byte == 0)
    issues = 0
    if illegal != _NONE:
        issues = _ISSUE_TOPIC_CHARACTERS
        if zeros != _NONE:
            issues |= _ISSUE_TOPIC_NUL
    return issues


@_kernel(forceinline=True)
def _masks(address, i, length, room):  # type: ignore[no-untyped-def]
    """Bit masks of up to 64 bytes from `i` on: 0x01, 0x02, 0x00, not ASCII; bytes from `length` on are left out."""
    if room - i >= 64:
        ones = _equal64(address + i, np.uint8(1))
        twos = _equal64(address + i, np.uint8(2))
        zeros = _equal64(address + i, np.uint8(0))
        high = _high64(address + i)
    else:
        ones = twos = zeros = high = _NONE
        for k in range(min(64, length - i)):
            byte = _u8(address + i + k)
            bit = _ONE << np.uint64(k)
            if byte == 1:
                ones |= bit
            elif byte == 2:
                twos |= bit
            elif byte == 0:
                zeros |= bit
            elif byte >= 0x80:
                high |= bit
    left = length - i
    keep = _ALL if left >= 64 else (_ONE << np.uint64(left)) - _ONE
    return ones & keep, twos & keep, zeros & keep, high & keep


@_kernel(forceinline=True)
def _pair(address, start, separator, end, position, row):  # type: ignore[no-untyped-def]
    """Close the segment [start, end): 1 for a pair that Java keeps, 0 for nothing at all, -1 for a dropped one."""
    value = separator + 1
    if separator <= start or value >= end:
        return -1 if end > start else 0
    name_length = separator - start
    if name_length == 4:
        name = _u32(address + start)
        if name == _TAGS:
            row[_TAGS_POSITION] = position + value
            row[_TAGS_POSITION + 1] = end - value
        elif name == _KEYS:
            row[_KEYS_POSITION] = position + value
            row[_KEYS_POSITION + 1] = end - value
    elif name_length == 8 and _u64(address + start) == _UNIQ_KEY:
        row[_UNIQ_POSITION] = position + value
        row[_UNIQ_POSITION + 1] = end - value
    return 1


@_kernel(forceinline=True)
def _note(address, place, i, bit, twos, length, position, row):  # type: ignore[no-untyped-def]
    """Write where the value behind the separator at block `i`, bit `bit` lies."""
    value = i + np.int64(_trailing_zeros(bit)) + 1
    behind = twos & ~(bit | (bit - _ONE))
    if behind != _NONE:
        end = i + np.int64(_trailing_zeros(behind))
    else:
        end = min(max(value, i + 64), length)
        while end < length and _u8(address + end) != 2:
            end += 1
    row[place] = position + value
    row[place + 1] = end - value


@_kernel(forceinline=True)
def _scan_clean_properties(address, length, room, position, row):  # type: ignore[no-untyped-def]
    """The ordinary string, ASCII and all pairs whole: (is it one?, pairs, does it hold a NUL?).

    Separators must alternate. Adding the bit behind every 0x01 to the mask of plain bytes makes a carry run to the
    next separator; the string is clean when those places are exactly the 0x02.
    """
    bad = _NONE
    seen_zero = _NONE
    count = _NONE
    is_open = _NONE
    last_ones = _NONE
    last_twos = _ONE << np.uint64(63)
    for i in range(0, length, 64):
        ones, twos, zeros, high = _masks(address, i, length, room)
        seen_zero |= zeros
        bad |= high
        left = min(length - i, 64)
        keep = _ALL if left == 64 else (_ONE << np.uint64(left)) - _ONE
        plain = ~(ones | twos) & keep
        carried = plain + ((ones << _ONE) | is_open)
        landed = carried & ~plain
        bad |= (landed & keep) ^ twos
        bad |= ones & ((twos << _ONE) | (last_twos >> np.uint64(63)))
        bad |= twos & ((ones << _ONE) | (last_ones >> np.uint64(63)))
        if left == 64:
            is_open = (ones >> np.uint64(63)) | np.uint64(carried < plain)
        else:
            is_open = (landed >> np.uint64(left)) & _ONE
        count += _popcount(twos)
        four = ones & ((twos << np.uint64(5)) | (last_twos >> np.uint64(59)))
        while four != _NONE:
            bit = four & (~four + _ONE)
            four ^= bit
            name = _u32(address + i + np.int64(_trailing_zeros(bit)) - 4)
            if name == _TAGS or name == _KEYS:
                place = _TAGS_POSITION if name == _TAGS else _KEYS_POSITION
                _note(address, place, i, bit, twos, length, position, row)
        eight = ones & ((twos << np.uint64(9)) | (last_twos >> np.uint64(55)))
        while eight != _NONE:
            bit = eight & (~eight + _ONE)
            eight ^= bit
            if _u64(address + i + np.int64(_trailing_zeros(bit)) - 8) == _UNIQ_KEY:
                _note(address, _UNIQ_POSITION, i, bit, twos, length, position, row)
        if left == 64:
            last_ones = ones
            last_twos = twos
        else:
            last_ones = ones << np.uint64(64 - left)
            last_twos = twos << np.uint64(64 - left)
    # releases differ in whether they write the last separator
    ends_well = (last_ones if is_open else ~last_twos) >> np.uint64(63) == _NONE
    return bad == _NONE and ends_well, np.int64(count + is_open), seen_zero != _NONE


@_kernel()
def _scan_odd_properties(address, length, room, position, row):  # type: ignore[no-untyped-def]
    """Segment by segment, as `MessageDecoder#string2messageProperties` does: (pairs, was something dropped?)."""
    count = 0
    dropped = False
    start = 0
    separator = -1
    for i in range(0, length, 64):
        ones, twos, _, _ = _masks(address, i, length, room)
        while twos != _NONE:
            bit = twos & (~twos + _ONE)
            end = i + np.int64(_trailing_zeros(twos))
            before = ones & (bit - _ONE)
            if separator < 0 and before != _NONE:
                separator = i + np.int64(_trailing_zeros(before))
            kept = _pair(address, start, separator, end, position, row)
            count += kept == 1
            dropped |= kept == -1
            start = end + 1
            separator = -1
            twos ^= bit
            ones &= ~(bit - _ONE)
        if separator < 0 and ones != _NONE:
            separator = i + np.int64(_trailing_zeros(ones))
    kept = _pair(address, start, separator, length, position, row)
    return count + (kept == 1), dropped or kept == -1


@_kernel()
def _finish_odd(base, end, origin, rows, count):  # type: ignore[no-untyped-def]
    """Text that is not plain ASCII in whole pairs, after the hot loop: a call inside it would cost every record."""
    for k in range(count):
        row = rows[k]
        if row[_ISSUES] & _ISSUE_TOPIC_CHARACTERS:
            topic = base + row[_TOPIC_POSITION] - origin
            if not utf8_ok(topic, row[_TOPIC_LENGTH]):
                row[_ISSUES] |= _ISSUE_TOPIC_UTF8
        if row[_PROPERTY_COUNT] == _ODD:
            at = row[_PROPERTIES_POSITION]
            length = row[_PROPERTIES_LENGTH]
            place = base + at - origin
            row[_TAGS_POSITION + 1] = -1
            row[_KEYS_POSITION + 1] = -1
            row[_UNIQ_POSITION + 1] = -1
            pairs, dropped = _scan_odd_properties(place, length, end - (at - origin), at, row)
            row[_PROPERTY_COUNT] = pairs
            if dropped:
                row[_ISSUES] |= _ISSUE_PROPERTIES_SYNTAX
            if not utf8_ok(place, length):
                row[_ISSUES] |= _ISSUE_PROPERTIES_UTF8


@_kernel(forceinline=True)
def _frame(base, at, end, origin, file_size, row):  # type: ignore[no-untyped-def]
    """Check one record at window position `at`; (_ACCEPTED or a stop, expected, found).

    The order is that of `CommitLog#checkMessageAndReturnSize`, without body and text.
    """
    left = end - at
    file_left = file_size - origin - at
    if file_left < _MIN_BLANK:
        return (_END if file_left == 0 else _SHORT), _MIN_BLANK, file_left
    if left < _MIN_BLANK:
        return _NEED_MORE, _MIN_BLANK, left
    address = base + at
    size = _be32(address)
    magic = _be32(address + 4)
    if magic == BLANK_MAGIC_CODE:
        return _BLANK, file_left, size
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        if magic == 0 and size == 0:
            return _ZERO, MAGIC_V1, 0
        return _BAD_MAGIC, MAGIC_V1, magic
    width = 2 if magic == MAGIC_V2 else 1
    least = _HEADER_SIZE + width + 2
    if size < least:
        return _BAD_SIZE, least, size
    if size > file_left:
        return _EXCEEDS_FILE, file_left, size
    if left < _OFF_SYS_FLAG + 4:
        return _NEED_MORE, size, left
    sys_flag = _be32(address + _OFF_SYS_FLAG)
    extra = (_V6_EXTRA if sys_flag & 0x10 else 0) + (_V6_EXTRA if sys_flag & 0x20 else 0)
    fixed = _HEADER_SIZE + extra
    if size < fixed + width + 2:
        return _BAD_SIZE, fixed + width + 2, size
    if left < fixed:
        return _NEED_MORE, size, left
    body_length = _be32(address + _OFF_BODY_LENGTH + extra)
    body = body_length if body_length > 0 else 0
    if fixed + body + width + 2 > size:
        return _BAD_BODY, size - fixed - width - 2, body_length
    if left < size:
        # nothing after the body can be longer than two signed 16-bit lengths
        if size - fixed - body > 2 * 32767 + width + 2:
            return _SIZE_MISMATCH, fixed + body + 2 * 32767 + width + 2, size
        return _NEED_MORE, size, left
    topic = fixed + body + width
    topic_length = _be16(address + topic - 2) if width == 2 else _i8(address + topic - 1)
    if topic_length < 0 or topic + topic_length + 2 > size:
        return _BAD_TOPIC, size - topic - 2, topic_length
    properties = topic + topic_length + 2
    properties_length = _be16(address + properties - 2)
    kept = properties_length if properties_length > 0 else 0
    if properties + kept > size:
        return _BAD_PROPERTIES, size - properties, properties_length
    if properties + kept != size:
        return _SIZE_MISMATCH, properties + kept, size
    position = origin + at
    row[_POSITION] = position
    row[_STORE_SIZE] = size
    row[_MAGIC] = magic
    row[_BODY_CRC] = _be32(address + _OFF_BODY_CRC)
    row[_QUEUE_ID] = _be32(address + _OFF_QUEUE_ID)
    row[_FLAG] = _be32(address + _OFF_FLAG)
    row[_QUEUE_OFFSET] = _be64(address + _OFF_QUEUE_OFFSET)
    row[_STORED_OFFSET] = _be64(address + _OFF_PHYSICAL_OFFSET)
    row[_SYS_FLAG] = sys_flag
    row[_BORN_TIMESTAMP] = _be64(address + _OFF_BORN_TIMESTAMP)
    born = _V6_EXTRA if sys_flag & 0x10 else 0
    row[_STORE_TIMESTAMP] = _be64(address + _OFF_STORE_TIMESTAMP + born)
    row[_RECONSUME] = _be32(address + _OFF_RECONSUME + extra)
    row[_PREPARED] = _be64(address + _OFF_PREPARED + extra)
    row[_BODY_POSITION] = position + fixed
    row[_BODY_LENGTH] = body_length
    row[_TOPIC_POSITION] = position + topic
    row[_TOPIC_LENGTH] = topic_length
    row[_PROPERTIES_POSITION] = position + properties
    row[_PROPERTIES_LENGTH] = properties_length
    row[_CRC_STATE] = _CRC_UNCHECKED
    row[_ISSUES] = 0
    return _ACCEPTED, size, size


@_kernel(forceinline=True)
def _contents(base, end, origin, checks, row):  # type: ignore[no-untyped-def]
    """CRC and text of a record whose frame is right. True when some text is left to `_finish_odd`."""
    odd = False
    body = row[_BODY_LENGTH]
    if body <= 0:
        row[_CRC_STATE] = _CRC_ABSENT
    elif checks & _CHECK_CRC:
        good = crc_at(base + row[_BODY_POSITION] - origin, body) == row[_BODY_CRC]
        row[_CRC_STATE] = _CRC_OK if good else _CRC_BAD
    if checks & _CHECK_TEXT:
        topic = row[_TOPIC_POSITION] - origin
        issues = _topic_issues(base + topic, row[_TOPIC_LENGTH], end - topic)
        row[_TAGS_POSITION + 1] = -1
        row[_KEYS_POSITION + 1] = -1
        row[_UNIQ_POSITION + 1] = -1
        at = row[_PROPERTIES_POSITION]
        length = row[_PROPERTIES_LENGTH]
        pairs = 0
        if length > 0:
            place = base + at - origin
            clean, pairs, has_nul = _scan_clean_properties(place, length, end - (at - origin), at, row)
            if has_nul:
                issues |= _ISSUE_PROPERTIES_NUL
            if not clean:
                odd = True
                pairs = _ODD
        row[_PROPERTY_COUNT] = pairs
        row[_ISSUES] |= issues
        odd |= issues != 0
    return odd


@_kernel()
def walk(buf, start, origin, file_size, segment_base, checks, rows, status):  # type: ignore[no-untyped-def]
    """Read records from window position `start` on, one row each, until one is not right or `rows` is full.

    `status` gets the number of rows, the *segment* position of the next byte, the stop, and what was expected and
    found there.
    """
    base = buf.ctypes.data
    end = buf.size
    at = start
    count = 0
    stop = _ROWS_FULL
    expected = 0
    found = 0
    odd = False
    limit = rows.shape[0]
    while count < limit:
        row = rows[count]
        stop, expected, found = _frame(base, at, end, origin, file_size, row)
        if stop != _ACCEPTED:
            break
        if row[_STORED_OFFSET] != segment_base + origin + at:
            row[_ISSUES] = _ISSUE_OFFSET
        if checks != 0:
            odd |= _contents(base, end, origin, checks, row)
        elif row[_BODY_LENGTH] <= 0:
            row[_CRC_STATE] = _CRC_ABSENT
        at += row[_STORE_SIZE]
        count += 1
    if odd:
        _finish_odd(base, end, origin, rows, count)
    if stop == _ACCEPTED:
        stop = _ROWS_FULL
    status[0] = count
    status[1] = origin + at
    status[2] = stop
    status[3] = expected
    status[4] = found


_OFFSET_MUST_MATCH = 0
_OFFSET_ANY = 1


@_kernel()
def find_record(buf, start, origin, file_size, segment_base, shift, any_offset, rows, status):  # type: ignore[no-untyped-def]
    """The first place at or after `start` that holds a whole right record, or a blank that reaches the file end.

    A record counts when its frame, body CRC and topic are right and its stored physical offset is `shift` bytes away
    from its place (any distance with `any_offset`). Uses `rows[0]` as scratch. `status`: 1 found or 0, the segment
    position, and as stop ROWS_FULL (record), BLANK, END (nothing) or NEED_MORE (a candidate is cut by the window).
    """
    base = buf.ctypes.data
    end = buf.size
    row = rows[0]
    at = start
    status[0] = 0
    status[2] = _END
    while at + _MIN_BLANK <= end:
        # the second magic byte is the rarest of the four in text and in zeros: skip blocks without one
        if end - at >= 72:
            seen = 0
            for k in range(64):
                byte = buf[at + 4 + k]
                seen += (byte == 0xDA) | (byte == 0xCB)
            if seen == 0:
                at += 64
                continue
        stop_at = min(at + 64, end - _MIN_BLANK + 1)
        while at < stop_at:
            first = buf[at + 4]
            if first == 0xDA or first == 0xCB:
                stop, expected, found = _frame(base, at, end, origin, file_size, row)
                if stop == _NEED_MORE:
                    status[1] = origin + at
                    status[2] = _NEED_MORE
                    status[3] = expected
                    return
                if stop == _BLANK and expected == found:
                    status[0] = 1
                    status[1] = origin + at
                    status[2] = _BLANK
                    return
                if stop == _ACCEPTED and (
                    any_offset or row[_STORED_OFFSET] - segment_base - origin - at == shift
                ):
                    if _contents(base, end, origin, _CHECK_CRC | _CHECK_TEXT, row):
                        _finish_odd(base, end, origin, rows, 1)
                    wrong = row[_ISSUES] & (_ISSUE_TOPIC_UTF8 | _ISSUE_TOPIC_CHARACTERS)
                    if row[_CRC_STATE] != _CRC_BAD and wrong == 0:
                        status[0] = 1
                        status[1] = origin + at
                        status[2] = _ROWS_FULL
                        return
            at += 1
    status[1] = origin + at


@_kernel()
def first_nonzero(buf, start):  # type: ignore[no-untyped-def]
    """Index of the first byte that is not zero at or after `start`; `buf.size` when there is none."""
    base = buf.ctypes.data
    end = buf.size
    i = start
    while end - i >= 64:
        word = _NONE
        for k in range(0, 64, 8):
            word |= _u64(base + i + k)
        if word != _NONE:
            break
        i += 64
    while i < end:
        if buf[i] != 0:
            return i
        i += 1
    return end


@_kernel()
def gather(buf, positions, lengths, offsets, out):  # type: ignore[no-untyped-def]
    """Copy spans of `buf` behind each other into `out`; negative lengths copy nothing. `offsets` (n+1, int32)."""
    total = 0
    offsets[0] = 0
    for i in range(positions.size):
        at = positions[i]
        for k in range(lengths[i]):
            out[total + k] = buf[at + k]
        total += max(lengths[i], 0)
        offsets[i + 1] = total
    return total


@_kernel()
def property_spans(buf, positions, lengths, spans, counts):  # type: ignore[no-untyped-def]
    """Places of all pairs that Java keeps: rows of `spans` are name position, name length, value position, value length.

    `counts[i]` is the number of pairs of record i after the last of several equal names has won; the place of a
    name is where it came first, as in Java's map. Returns the number of spans.
    """
    total = 0
    for r in range(positions.size):
        at = positions[r]
        end = at + max(lengths[r], 0)
        first = total
        start = at
        separator = -1
        i = at
        while i <= end:
            byte = buf[i] if i < end else np.uint8(2)
            if byte == 1:
                if separator < 0:
                    separator = i
            elif byte == 2:
                if separator > start and separator + 1 < i:
                    total = _put_span(buf, spans, first, total, start, separator, i)
                start = i + 1
                separator = -1
            i += 1
        counts[r] = total - first
    return total


@_kernel()
def _put_span(buf, spans, first, total, start, separator, end):  # type: ignore[no-untyped-def]
    name_length = separator - start
    for k in range(first, total):
        if spans[k, 1] == name_length:
            same = True
            for b in range(name_length):
                if buf[spans[k, 0] + b] != buf[start + b]:
                    same = False
                    break
            if same:
                spans[k, 2] = separator + 1
                spans[k, 3] = end - separator - 1
                return total
    spans[total, 0] = start
    spans[total, 1] = name_length
    spans[total, 2] = separator + 1
    spans[total, 3] = end - separator - 1
    return total + 1
