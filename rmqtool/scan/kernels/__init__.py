"""numba kernels over commit log bytes. `kernels_python` is the twin with the same functions.

Every kernel takes a window of a segment (`buf`, uint8), where in the segment it begins (`origin`) and how
long the segment is (`file_size`), releases the GIL, writes int64 rows (`fields.Field`) and an int64 status
(`fields.Status`). No kernel reads outside `buf`, whatever the bytes say.
Loading this package also guards mapped files (`faulting`).
"""

from __future__ import annotations

from rmqtool.scan import numba_settings as _numba_settings  # noqa: F401 - before anything loads numba
from rmqtool.scan.kernels import building, carve, dispatch, encoding, hashes, lookup
from rmqtool.scan.kernels import faulting as _faulting  # noqa: F401 - loading it guards mapped files
from rmqtool.scan.kernels.checksum import HAVE_ISAL, crc_at
from rmqtool.scan.kernels.columns import gather_fields, numbers
from rmqtool.scan.kernels.entries import walk_entries
from rmqtool.scan.kernels.sound import sound_columns, sound_stretches, sound_without_keys
from rmqtool.scan.kernels.spans import (
    first_nonzero,
    gather,
    message_ids,
    property_spans,
    property_texts,
    span_units,
)
from rmqtool.scan.kernels.tally import tally
from rmqtool.scan.kernels.text import utf8_ok
from rmqtool.scan.kernels.walk import find_record, records_at, walk

__all__ = [
    "HAVE_ISAL",
    "building",
    "carve",
    "crc_at",
    "dispatch",
    "encoding",
    "find_record",
    "first_nonzero",
    "gather",
    "gather_fields",
    "hashes",
    "lookup",
    "message_ids",
    "numbers",
    "property_spans",
    "property_texts",
    "records_at",
    "sound_columns",
    "sound_stretches",
    "sound_without_keys",
    "span_units",
    "tally",
    "utf8_ok",
    "walk",
    "walk_entries",
]
