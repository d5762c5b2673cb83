"""Properties that a broker reads as numbers when it takes a record."""

from __future__ import annotations

import numpy as np

from formats.commitlog import SysFlag
from formats.properties import PROPERTY_SEPARATOR
from rmqtool.scan.fields import DIGITS_OF, SCHEDULED
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    SYS_FLAG,
    TOPIC_LENGTH,
    TOPIC_POSITION,
)
from rmqtool.scan.kernels.intrinsics import u8

INNER_BATCH = int(SysFlag.INNER_BATCH)
TOPIC = np.frombuffer(SCHEDULED, np.uint8)
(DELAY, DELAY_DIGITS), (COUNT, COUNT_DIGITS), (BASE, BASE_DIGITS) = (
    (np.frombuffer(name, np.uint8), most) for name, most in DIGITS_OF.items()
)


@kernel()
def has_odd_number(place, row):
    """Whether a delayed message or an inner batch has such a property that is not a few digits.

    place: the address of physical position 0 of the file.
    """
    if row[SYS_FLAG] & INNER_BATCH == 0 and not (
        row[TOPIC_LENGTH] == TOPIC.size and _begins_with(place + row[TOPIC_POSITION], TOPIC.size, TOPIC)
    ):
        return False
    at, length = place + row[PROPERTIES_POSITION], row[PROPERTIES_LENGTH]
    start = 0
    for i in range(length + 1):
        if i == length or u8(at + i) == PROPERTY_SEPARATOR:
            if (
                _is_odd(at + start, i - start, DELAY, DELAY_DIGITS)
                or _is_odd(at + start, i - start, COUNT, COUNT_DIGITS)
                or _is_odd(at + start, i - start, BASE, BASE_DIGITS)
            ):
                return True
            start = i + 1
    return False


@kernel()
def _is_odd(at, length, name, most):
    """Whether a property of this name has a value that is not 1 to `most` digits."""
    if not _begins_with(at, length, name):
        return False
    digits = length - name.size
    if digits == 0 or digits > most:
        return digits != 0  # a property without a value is none
    for i in range(name.size, length):  # noqa: SIM110 - numba has no generators
        if not 48 <= u8(at + i) <= 57:
            return True
    return False


@kernel()
def _begins_with(at, length, name):
    i = 0
    while i < min(name.size, length) and u8(at + i) == name[i]:
        i += 1
    return i == name.size
