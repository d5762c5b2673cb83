"""Record batches with what `--redact` hides taken out, for readers that ask further questions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.output.messages import MessageShape
from rmqtool.scan.table import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

_BODIES = ("body", "plain_body", "body_sha256", "plain_body_sha256")
_DIGESTS = ("body_sha256", "plain_body_sha256")
_OF_BODIES = frozenset({*_BODIES, "body_crc"})
_HIDDEN = frozenset({"properties_raw"})
"""columns that are never shown: every value of the record stands in them"""


class RedactedTable:
    """what: some of `body`, `keys`, `hosts`, `properties`.

    A column `redacted` names what is hidden of a row.
    """

    field = pa.field("redacted", pa.list_(pa.string()))

    def __init__(self, what: frozenset[str]) -> None:
        self._what = what

    def _shape(self, wanted: Sequence[str]) -> MessageShape:
        """How rows are judged: with their bodies only where something of these is wanted."""
        form = "none" if _OF_BODIES.isdisjoint(wanted) else "base64"
        return MessageShape(form, not {*_DIGESTS}.isdisjoint(wanted), self._what)

    def needed(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Columns of the record table by which these are judged and made."""
        made = [name for name in wanted if name in COLUMNS and name not in _HIDDEN]
        return tuple(dict.fromkeys((*self._shape(wanted).columns, *made)))

    def hide(self, batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
        """The wanted columns; what is hidden is `(redacted)`, bytes and numbers are null."""
        shape = self._shape(wanted)
        names, lists = shape.rows(batch)
        shown = dict(zip(names, lists, strict=True))
        redacted: list[list[str]] = list(shown["redacted"])
        hidden = pa.array(["body" in one for one in redacted], pa.bool_())
        columns: dict[str, pa.Array] = {"redacted": pa.array(redacted, self.field.type)}
        for name in wanted:
            if name in {"body", "plain_body"}:
                columns[name] = pc.if_else(hidden, pa.scalar(None, pa.binary()), batch[name])
            elif name in _HIDDEN:
                columns[name] = _nulls(batch, name)
            elif name in _DIGESTS or name in _JUDGED:
                columns[name] = _column(name, shown.get(name), batch)
            elif name != "redacted":
                columns[name] = batch[name]
        return pa.RecordBatch.from_arrays([columns[name] for name in wanted], list(wanted))


_JUDGED = frozenset(
    {"body_crc", "born_host", "store_host", "offset_msg_id", "tags", "keys", "uniq_key", "properties"}
)
"""columns whose values may be replaced"""


def _nulls(batch: pa.RecordBatch, name: str) -> pa.Array:
    return pa.nulls(batch.num_rows, COLUMNS[name].type)


def _column(name: str, values: Any, batch: pa.RecordBatch) -> pa.Array:
    """A column of rows; null where rows have none."""
    if values is None:
        return _nulls(batch, name)
    if pa.types.is_map(COLUMNS[name].type):
        values = [None if one is None else list(one.items()) for one in values]
    return pa.array(list(values), COLUMNS[name].type)
