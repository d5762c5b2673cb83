"""What the kernels are, whichever answers: modules with these functions (`engine.choose_kernels`).

What each one does stands at the compiled one in `kernels`, and in `kernels_python`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Bools = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


class Building(Protocol):
    """Units of queues and items of index files."""

    def append_units(
        self, columns: Ints, chosen: Ints, start: int, lost: int, state: Ints, out: Bytes, taken: Ints
    ) -> tuple[int, int]: ...

    def put_keys(
        self,
        keys: tuple[Int32s, Int32s],
        records: tuple[Ints, Ints],
        start: int,
        room: int,
        state: Ints,
        slots: Int32s,
        out: Bytes,
    ) -> int: ...

    def places_and_times(self, rows: Ints, base: int, offsets: Ints, times: Ints) -> tuple[int, int]: ...

    def feeds_further_queues(self, buf: Bytes, origin: int, rows: Ints) -> bool: ...

    def are_single(self, buf: Bytes, origin: int, rows: Ints) -> bool: ...


class Carve(Protocol):
    """Records at any byte of any file."""

    def carve(
        self,
        buf: Bytes,
        start: int,
        border: int,
        origin: int,
        file_size: int,
        longest: int,
        follows: int,
        rows: Ints,
        status: Ints,
    ) -> None: ...


class Dispatch(Protocol):
    """What a run of records gives the queues."""

    def rehash(self, partitions: Ints, count: int, table: Int32s) -> None: ...

    def place(
        self,
        buf: Bytes,
        origin: int,
        rows: Ints,
        start: int,
        segment_base: int,
        known: tuple[Ints, Bytes, Int32s],
        counts: Ints,
        columns: Ints,
    ) -> int: ...

    def stretch(
        self,
        buf: Bytes,
        origin: int,
        rows: Ints,
        start: int,
        segment_base: int,
        known: tuple[Ints, Bytes, Int32s, Ints],
        counts: Ints,
        columns: Ints,
    ) -> int: ...

    def outline(self, rows: Ints, most: int) -> tuple[int, int]: ...

    def by_partition(self, columns: Ints, count: int, starts: Ints, order: Ints) -> None: ...

    def agree_units(
        self, units: Bytes, first_slot: int, columns: Ints, chosen: Ints, right: Bools
    ) -> tuple[int, int]: ...

    def ascending_units(self, units: Bytes, highest: int) -> int: ...


class Encoding(Protocol):
    """Records from columns."""

    def encode(
        self,
        rows: Ints,
        hosts: Ints,
        sources: tuple[Bytes, Bytes, Bytes, Bytes],
        trailer: int,
        places: Ints,
        out: Bytes,
    ) -> None: ...

    def prepare_rows(
        self,
        values: tuple[Ints, Bytes, Ints, Bytes, Ints, Bytes, Ints, Bytes, Ints, Bytes],
        numbers: tuple[Ints, Ints, Ints, Ints],
        topics: Ints,
        limits: tuple[int, int, int, int, int],
        texts: Bytes,
        rows: Ints,
        refused: Ints,
    ) -> tuple[int, int]: ...

    def number_rows(self, which: Ints, following: Ints, rows: Ints, now: int) -> None: ...

    def place_rows(self, rows: Ints, begin: int, free: int, most: int, places: Ints) -> tuple[int, int]: ...


class Hashes(Protocol):
    """Hashes of keys, and the chains of index files."""

    def keyed(self, buf: Bytes, origin: int, rows: Ints, found: Ints) -> None: ...

    def key_hashes(
        self, buf: Bytes, origin: int, rows: Ints, start: int, hashes: Int32s, owners: Int32s
    ) -> tuple[int, int]: ...

    def first_in_sieve(self, buf: Bytes, origin: int, rows: Ints, bits: Bytes) -> int: ...

    def agree(
        self,
        buf: Bytes,
        hashes: Int32s,
        owners: Int32s,
        offsets: Ints,
        times: Ints,
        begin: int,
        relative: bool,
    ) -> int: ...

    def chain(self, buf: Bytes, first: int, slots: int, state: Ints, bad: Ints, count: int) -> int: ...

    def compare_slots(self, buf: Bytes, state: Ints, wrong: Ints, lengths: Ints) -> tuple[int, int]: ...

    def longest_chains(self, state: Ints, least: int, heads: Ints) -> int: ...

    def follow(self, buf: Bytes, start: int, heads: Ints, hashes: Int32s) -> int: ...


class Lookup(Protocol):
    """Records by key in mapped files."""

    def look_up(self, asked: Ints) -> int: ...


class Kernels(Protocol):
    """The functions that read records, and the others by what they are for."""

    @property
    def building(self) -> Building: ...

    @property
    def carve(self) -> Carve: ...

    @property
    def dispatch(self) -> Dispatch: ...

    @property
    def encoding(self) -> Encoding: ...

    @property
    def hashes(self) -> Hashes: ...

    @property
    def lookup(self) -> Lookup | None: ...

    @property
    def span_units(self) -> Callable[[Ints], int] | None: ...

    def walk(
        self,
        buf: Bytes,
        start: int,
        origin: int,
        file_size: int,
        segment_base: int,
        checks: int,
        rows: Ints,
        status: Ints,
    ) -> None: ...

    def sound_stretches(
        self,
        buf: Bytes,
        start: int,
        origin: int,
        place: Ints,
        checks: int,
        most: int,
        rows: Ints,
        status: Ints,
        known: tuple[Ints, Bytes, Int32s, Ints],
        counts: Ints,
        columns: Ints,
        found: Ints,
        sums: Ints,
    ) -> None: ...

    def sound_columns(
        self,
        buf: Bytes,
        start: int,
        origin: int,
        place: Ints,
        checks: int,
        most: int,
        rows: Ints,
        status: Ints,
        known: tuple[Ints, Bytes, Int32s],
        counts: Ints,
        columns: Ints,
        keys: tuple[Int32s, Int32s],
        places: Ints,
        sums: Ints,
    ) -> None: ...

    def sound_without_keys(
        self,
        buf: Bytes,
        start: int,
        origin: int,
        place: Ints,
        checks: int,
        most: int,
        bits: Bytes,
        rows: Ints,
        status: Ints,
        sums: Ints,
    ) -> None: ...

    def records_at(
        self,
        buf: Bytes,
        positions: Ints,
        origin: int,
        file_size: int,
        segment_base: int,
        checks: int,
        rows: Ints,
    ) -> int: ...

    def find_record(
        self,
        buf: Bytes,
        start: int,
        origin: int,
        file_size: int,
        segment_base: int,
        shift: int,
        any_offset: int,
        rows: Ints,
        status: Ints,
    ) -> None: ...

    def first_nonzero(self, buf: Bytes, start: int) -> int: ...

    def gather(self, buf: Bytes, positions: Ints, lengths: Ints, offsets: Int32s, out: Bytes) -> int: ...

    def gather_fields(
        self,
        buf: Bytes,
        origin: int,
        rows: Ints,
        compared: int,
        fields: Ints,
        ends: tuple[Int32s, ...],
        out: tuple[Bytes, ...],
    ) -> int: ...

    def numbers(
        self, rows: Ints, summarised: Ints, figures: Ints, fields: Ints, narrow: Int32s, wide: Ints
    ) -> None: ...

    def property_texts(
        self,
        buf: Bytes,
        spans: Ints,
        name_ends: Int32s,
        names: Bytes,
        value_ends: Int32s,
        values: Bytes,
    ) -> tuple[int, int]: ...

    def message_ids(self, buf: Bytes, positions: Ints, widths: Ints, offsets: Ints, out: Bytes) -> None: ...

    def property_spans(
        self, buf: Bytes, positions: Ints, lengths: Ints, spans: Ints, counts: Ints, empty: Bools
    ) -> int: ...

    def tally(
        self, rows: Ints, partitions: Ints, topics: Ints, grid: Ints, drawn: Ints, sums: Ints, seconds: Ints
    ) -> tuple[int, int]: ...

    def walk_entries(
        self, buf: Bytes, start: int, origin: int, file_size: int, checks: int, rows: Ints, status: Ints
    ) -> None: ...
