"""Geometry of an index file: from settings, from its content (`index_solver`), or from the default length."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS, file_size
from rmqtool.errors import RmqtoolError
from rmqtool.store.index_solver import HEADER, ITEM, SLOT, fits, sample_fits, solve_index
from rmqtool.store.names import INT_MAX
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.files import StoreFile

DEFAULT_LENGTH = file_size(DEFAULT_SLOTS, DEFAULT_ITEMS)
_SHOWN = 8


class Source(StrEnum):
    """How a size is known."""

    GIVEN = "given"
    INFERRED = "inferred"
    DEFAULT = "default"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class IndexGeometry:
    """Number of slots and items of one index file; both None when it is ambiguous.

    length: of the file, bytes. candidates: the (slots, items) pairs that are possible or most likely (at
    most 8). detail: one line for people.
    """

    slots: int | None
    items: int | None
    source: Source
    length: int
    candidates: tuple[tuple[int, int], ...]
    detail: str

    def slot_position(self, slot: int) -> int:
        """Byte position of a slot."""
        return HEADER + SLOT * slot

    def item_position(self, number: int) -> int:
        """Byte position of an item; raises ValueError when the geometry is ambiguous."""
        if self.slots is None:
            raise ValueError("the geometry of the index file is ambiguous")
        return HEADER + SLOT * self.slots + ITEM * number


def index_geometry(file: StoreFile, config: StoreConfig | None = None) -> IndexGeometry:
    """Geometry of an index file: by the settings given, else by its content, else by the default length.

    Settings that fit neither the length nor the chains are set aside and said so. A file without entries,
    or one too damaged to tell, is ambiguous. Raises `StoreIOError` or `UnreadableError` when the file
    cannot be read.
    """
    with ZeroFilledSource(file.open("pread"), file.size) as source:
        return geometry_of(source, configured_geometry(config))


def configured_geometry(config: StoreConfig | None) -> tuple[int, int] | None:
    """Slots and items by the settings, None where these do not tell."""
    if config is None or not (config.is_set("max_hash_slot_num") or config.is_set("max_index_num")):
        return None
    return config.max_hash_slot_num, config.max_index_num


def geometry_of(source: ByteSource, configured: tuple[int, int] | None = None) -> IndexGeometry:
    """As `index_geometry`, on an open file; `configured` is (slots, items)."""
    length = source.size
    if length > INT_MAX:
        detail = f"no index file has {length} bytes: a broker maps {INT_MAX} at most"
        return IndexGeometry(None, None, Source.AMBIGUOUS, length, (), detail)
    misfit = ""
    if configured is not None:
        if _settings_fit(source, *configured):
            return _geometry(configured, Source.GIVEN, length, "by the settings given")
        misfit = "; the settings given ({} slots, {} entries) do not fit".format(*configured)
    if length == DEFAULT_LENGTH and sample_fits(source, DEFAULT_SLOTS):
        default = DEFAULT_SLOTS, DEFAULT_ITEMS
        return _geometry(default, Source.DEFAULT, length, f"by the default length{misfit}")
    solved = solve_index(source)
    if solved is not None and solved != (DEFAULT_SLOTS, DEFAULT_ITEMS):
        return _geometry(solved, Source.INFERRED, length, f"solved from length and chains{misfit}")
    if length == DEFAULT_LENGTH:
        default = DEFAULT_SLOTS, DEFAULT_ITEMS
        return _geometry(default, Source.DEFAULT, length, f"by the default length{misfit}")
    candidates = tuple(likely_pairs(length))
    detail = f"slots and entries are unknown: no chain says, and the length {length} allows several{misfit}"
    if not candidates:
        detail = f"no index file has {length} bytes{misfit}"
    return IndexGeometry(None, None, Source.AMBIGUOUS, length, candidates, detail)


def _geometry(pair: tuple[int, int], source: Source, length: int, why: str) -> IndexGeometry:
    slots, items = pair
    return IndexGeometry(slots, items, source, length, (pair,), f"{slots} slots and {items} entries {why}")


def _settings_fit(source: ByteSource, slots: int, items: int) -> bool:
    """By the length, or by the chains in what is left of a file that was cut."""
    expected = file_size(slots, items)
    if source.size >= expected:
        return source.size == expected
    return source.size > HEADER + SLOT * slots and fits(source, slots, cut=True) == 1.0


def likely_pairs(length: int) -> Iterator[tuple[int, int]]:
    """Up to eight (slots, items) pairs of a length, those nearest to the default of 1 : 4 first."""
    words = (length - HEADER) // SLOT
    if length < HEADER + SLOT + ITEM or (length - HEADER) % SLOT:
        return
    # words = slots + 5·items; at slots : items = 1 : 4 that is 21 slots.
    most = (words - 1) // 5
    nearest = min(max(round(words * 4 / 21), 1), most)
    order = sorted(
        range(max(nearest - _SHOWN, 1), min(nearest + _SHOWN, most) + 1), key=lambda n: abs(n - nearest)
    )
    for items in order[:_SHOWN]:
        yield words - 5 * items, items


def try_geometry(file: StoreFile, config: StoreConfig | None = None) -> IndexGeometry:
    """`index_geometry`, ambiguous with the reason instead of an exception when the file cannot be read."""
    try:
        return index_geometry(file, config)
    except RmqtoolError as error:
        return IndexGeometry(None, None, Source.AMBIGUOUS, file.size, (), str(error))
