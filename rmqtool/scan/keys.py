"""What a broker puts into the index for a run of records: the hashes of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Hashes

    Int32s = npt.NDArray[np.int32]

_MOST_KEYS = 1 << 15
"""a record has fewer: its properties have 32,767 bytes at most"""


def key_hashes(hashing: Hashes, run: Records) -> tuple[Int32s, Int32s]:
    """Hash of every key, and the row number of its record, record after record.

    hashing: `kernels.hashes`. UNIQ_KEY comes first, then the elements of KEYS; rolled back transactions have
    none (`IndexService#buildIndex`).
    """
    rows = run.rows
    start = 0
    parts: list[tuple[Int32s, Int32s]] = []
    while start < len(rows):
        hashes = np.empty(_MOST_KEYS + 2 * len(rows), np.int32)
        owners = np.empty(len(hashes), np.int32)
        count, start = hashing.key_hashes(run.window, run.origin, rows, start, hashes, owners)
        parts.append((hashes[:count], owners[:count]))
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.int32)
    return (
        np.concatenate([one for one, _ in parts] or [nothing]),
        np.concatenate([one for _, one in parts] or [nothing]),
    )
