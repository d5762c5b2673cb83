"""Files beside the commit log as a listing: batches and rows that are wanted, within the limit, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.index import item_position, slot_position
from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.query.inventory import NOT_DECODED
from rmqtool.scan.files import RowBatch
from rmqtool.secrets import without_secrets
from rmqtool.store.config_json import ParseState
from rmqtool.store.coverage import Incomplete, rest_of_files, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.query.counts import FileCounts
    from rmqtool.query.select_units import UnitFilter
    from rmqtool.scan.files import FileReader
    from rmqtool.store.files import StoreFile

    Row = dict[str, Any]

_BROKEN = frozenset({"invalid", "zero"})
"""states of units that end what a broker loads; zeros in front of other units are lost ones"""


class FileListing:
    """What of some files is listed, one after the other. `counts` holds at any time what has been.

    slots: False leaves the slots of index files out.
    """

    def __init__(
        self, files: Sequence[StoreFile], choose: UnitFilter, counts: FileCounts, *, slots: bool
    ) -> None:
        self.counts = counts
        self._files = files
        self._choose = choose
        self._slots = slots
        self._done = 0
        self._index_slots = 0

    @property
    def full(self) -> bool:
        """Whether the limit left something out."""
        return self._choose.left_out is not None

    def left(self, reason: Incomplete) -> list[Row]:
        """The files that are not listed to their end."""
        return rest_of_files(self._files[self._done :], 0, reason)

    def read(self, reader: FileReader, file: StoreFile) -> Iterator[RowBatch | Row]:
        """What is wanted of the next file. What cannot be read of it is reported by `counts`."""
        counts = self.counts
        counts.files += 1
        try:
            yield from self._wanted(reader, file)
        except UnreadableError as error:
            rest = file.size - error.offset
            counts.not_covered.append(unreadable(file.display_path, str(error), error.offset, rest))
        except RmqtoolError as error:
            counts.not_covered.append(unreadable(file.display_path, str(error), 0, file.size))
        if self._choose.left_out is not None:
            place = _position(self._choose.left_out, self._index_slots)
            counts.not_covered += rest_of_files(self._files[self._done :], place, Incomplete.LIMIT)
        else:
            self._done += 1

    def _wanted(self, reader: FileReader, file: StoreFile) -> Iterator[RowBatch | Row]:
        for item in reader.read(file):
            if isinstance(item, RowBatch):
                if item.type == "index_slot" and not self._slots:
                    continue
                batch = self._choose.units(item.batch)
                if "state" in batch.schema.names:
                    states = batch["state"].to_pylist()
                    self.counts.damaged += sum(state in _BROKEN for state in states)
                yield RowBatch(item.type, batch)
                self.counts.add(item.type, batch.num_rows)
            elif row := self._choose.row(item):
                if row["type"] == "config" and "content" in row:
                    row |= {"content": without_secrets(row["content"])}
                yield row
                self._count(row, file)
            if self._choose.left_out is not None:
                return

    def _count(self, row: Row, file: StoreFile) -> None:
        counts = self.counts
        counts.add(row["type"])
        counts.damaged += _is_damaged(row)
        self._index_slots = row.get("slots") or self._index_slots
        if row.get("reason") == Incomplete.UNREADABLE:
            lost = unreadable(file.display_path, row["error"], row["position"], row["length"])
            counts.not_covered.append(lost)
        if row["type"] == "undecoded":
            counts.undecoded += 1
            counts.newer |= file.kind in NOT_DECODED
            counts.not_covered.append(unreadable(file.display_path, row["reason"], 0, file.size))


def _position(row: Mapping[str, Any], slots: int) -> int:
    """Byte of a row in its file, 0 where only the whole file has one."""
    if "position" in row:
        return int(row["position"])
    if "number" in row and "slot" in row:
        return item_position(row["number"], slots) if "key_hash" in row else slot_position(row["slot"])
    return 0


def _is_damaged(row: Mapping[str, Any]) -> bool:
    """A file that was read, but not to its end or not as what it should be."""
    if row["type"] == "config":
        nothing = row["state"] == ParseState.EMPTY and row["detail"] is not None  # zeros, not an empty file
        return bool(nothing or row["state"] == ParseState.UNPARSABLE)
    return bool(row.get("problems") or (row["type"] == "epoch_file" and not row["valid"]))
