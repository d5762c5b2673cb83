"""The kernels that callers use, with what they take and answer: what is compiled ahead, and how it is called.

numba finds types by itself at each call; a library needs them said once. An array goes as its address and its
lengths and is contiguous; a tuple of arrays as these one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rmqtool.scan.fields import TEXTS


class Array(NamedTuple):
    """An array argument: NumPy's name of its type, and how many dimensions it has."""

    dtype: str
    dimensions: int


BYTES = Array("uint8", 1)
INTS = Array("int32", 1)
LONGS = Array("int64", 1)
TABLE = Array("int64", 2)
INT_COLUMNS = Array("int32", 2)
FLAGS = Array("bool", 1)
NUMBER = "int64"

Argument = Array | str | tuple[Array | str, ...]


class Signature(NamedTuple):
    """Arguments of a kernel, how many integers it answers, and whether that is a `bool`."""

    arguments: tuple[Argument, ...]
    answers: int = 0
    truth: bool = False


_SCAN = (BYTES, NUMBER, NUMBER, NUMBER)

SIGNATURES: dict[str, dict[str, Signature]] = {
    "building": {
        "append_units": Signature((TABLE, LONGS, NUMBER, NUMBER, LONGS, BYTES, LONGS), 2),
        "put_keys": Signature(((INTS, INTS), (LONGS, LONGS), NUMBER, NUMBER, LONGS, INTS, BYTES), 1),
        "places_and_times": Signature((TABLE, NUMBER, LONGS, LONGS), 2),
        "feeds_further_queues": Signature((BYTES, NUMBER, TABLE), 1, truth=True),
        "are_single": Signature((BYTES, NUMBER, TABLE), 1, truth=True),
    },
    "carve": {
        "carve": Signature((*_SCAN, NUMBER, NUMBER, NUMBER, TABLE, LONGS)),
    },
    "checksum": {
        "crc_at": Signature((NUMBER, NUMBER), 1),
    },
    "columns": {
        "gather_fields": Signature(
            (BYTES, NUMBER, TABLE, NUMBER, LONGS, len(TEXTS) * (INTS,), len(TEXTS) * (BYTES,)), 1
        ),
        "numbers": Signature((TABLE, LONGS, TABLE, LONGS, INT_COLUMNS, TABLE)),
    },
    "dispatch": {
        "rehash": Signature((TABLE, NUMBER, INTS)),
        "place": Signature((BYTES, NUMBER, TABLE, NUMBER, NUMBER, (TABLE, BYTES, INTS), LONGS, TABLE), 1),
        "stretch": Signature(
            (BYTES, NUMBER, TABLE, NUMBER, NUMBER, (TABLE, BYTES, INTS, LONGS), LONGS, TABLE), 1
        ),
        "outline": Signature((TABLE, NUMBER), 2),
        "by_partition": Signature((TABLE, NUMBER, LONGS, LONGS)),
        "agree_units": Signature((BYTES, NUMBER, TABLE, LONGS, FLAGS), 2),
        "ascending_units": Signature((BYTES, NUMBER), 1),
    },
    "encoding": {
        "encode": Signature((TABLE, TABLE, (BYTES, BYTES, BYTES, BYTES), NUMBER, LONGS, BYTES)),
        "prepare_rows": Signature(
            (5 * (LONGS, BYTES), 4 * (LONGS,), TABLE, 5 * (NUMBER,), BYTES, TABLE, LONGS), 2
        ),
        "number_rows": Signature((LONGS, LONGS, TABLE, NUMBER)),
        "place_rows": Signature((TABLE, NUMBER, NUMBER, NUMBER, LONGS), 2),
    },
    "entries": {
        "walk_entries": Signature((*_SCAN, NUMBER, TABLE, LONGS)),
    },
    "hashes": {
        "key_hashes": Signature((BYTES, NUMBER, TABLE, NUMBER, INTS, INTS), 2),
        "keyed": Signature((BYTES, NUMBER, TABLE, LONGS)),
        "first_in_sieve": Signature((BYTES, NUMBER, TABLE, BYTES), 1),
        "agree": Signature((BYTES, INTS, INTS, LONGS, LONGS, NUMBER, NUMBER), 1),
        "chain": Signature((BYTES, NUMBER, NUMBER, LONGS, TABLE, NUMBER), 1),
        "compare_slots": Signature((BYTES, LONGS, LONGS, LONGS), 2),
        "longest_chains": Signature((LONGS, NUMBER, LONGS), 1),
        "follow": Signature((BYTES, NUMBER, LONGS, INTS), 1),
    },
    "lookup": {
        "look_up": Signature((LONGS,), 1),
    },
    "sound": {
        "sound_stretches": Signature(
            (
                *(BYTES, NUMBER, NUMBER, LONGS, NUMBER, NUMBER, TABLE, LONGS),
                (TABLE, BYTES, INTS, LONGS),
                *(LONGS, TABLE, LONGS, LONGS),
            )
        ),
        "sound_columns": Signature(
            (
                *(BYTES, NUMBER, NUMBER, LONGS, NUMBER, NUMBER, TABLE, LONGS),
                (TABLE, BYTES, INTS),
                *(LONGS, TABLE, (INTS, INTS), TABLE, LONGS),
            )
        ),
        "sound_without_keys": Signature(
            (BYTES, NUMBER, NUMBER, LONGS, NUMBER, NUMBER, BYTES, TABLE, LONGS, LONGS)
        ),
    },
    "spans": {
        "first_nonzero": Signature((BYTES, NUMBER), 1),
        "gather": Signature((BYTES, LONGS, LONGS, INTS, BYTES), 1),
        "message_ids": Signature((BYTES, LONGS, LONGS, LONGS, BYTES)),
        "property_texts": Signature((BYTES, TABLE, INTS, BYTES, INTS, BYTES), 2),
        "span_units": Signature((LONGS,), 1),
        "property_spans": Signature((BYTES, LONGS, LONGS, TABLE, LONGS, FLAGS), 1),
    },
    "tally": {
        "tally": Signature((TABLE, LONGS, LONGS, LONGS, TABLE, TABLE, TABLE), 2),
    },
    "text": {
        "utf8_ok": Signature((NUMBER, NUMBER), 1, truth=True),
    },
    "walk": {
        "walk": Signature((*_SCAN, NUMBER, NUMBER, TABLE, LONGS)),
        "records_at": Signature((BYTES, LONGS, NUMBER, NUMBER, NUMBER, NUMBER, TABLE), 1),
        "find_record": Signature((*_SCAN, NUMBER, NUMBER, NUMBER, TABLE, LONGS)),
    },
}
"""by module of `scan.kernels`"""

BUS_ERROR = "on_bus_error"
"""the handler of `kernels.faulting`"""

MAPPINGS = "rmqtool_mappings"
"""variable with the address of the table of `store.faults`"""

CRC32 = "rmqtool_crc32"
"""variable with the address of ISA-L's CRC-32"""


def flat(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments, or what is said of them, with tuples taken apart."""
    return [one for group in arguments for one in (group if type(group) is tuple else (group,))]
