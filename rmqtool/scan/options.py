"""How a command reads a store: said once, for all that read files for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.parallel import WorkerContext
from rmqtool.store.access import Access
from rmqtool.store.live import is_live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

ALONE = WorkerContext()
"""of work that has no other beside it"""


def data_bytes(segments: Iterable[Segment]) -> int:
    """Bytes that really lie on disk, the measure of how long a scan takes."""
    return sum(min(one.size, one.file.disk_bytes) for one in segments)


@dataclass(frozen=True)
class ReadOptions:
    """How a store is read.

    access: how files are opened; what a mapping cannot give is read again. jobs: segments, or parts of them,
    read at once; memory depends neither on them nor on the log. live: a broker may be writing. advance: is
    given the number of bytes done since its last call; what it raises ends the work. expect: is given how
    many more will be done, by work that knows it only when it begins. input_bytes: of data, by which kernels
    are chosen, None for many. given: kernels to use whatever the size.
    """

    access: Access = field(default_factory=Access)
    jobs: int = 1
    live: bool = False
    advance: Callable[[int], object] | None = None
    expect: Callable[[int], object] | None = None
    input_bytes: int | None = None
    given: Kernels | None = None

    @classmethod
    def of(
        cls,
        store: Store,
        jobs: int = 1,
        *,
        safe_io: bool = False,
        bytes_per_second: int | None = None,
        advance: Callable[[int], object] | None = None,
        expect: Callable[[int], object] | None = None,
        live: bool | None = None,
    ) -> ReadOptions:
        """For a store, which is asked whether it is live unless that is given.

        bytes_per_second: reading rate of all files together, None for no bound.
        """
        live = is_live(store) if live is None else live
        access = Access.of(bytes_per_second, careful=safe_io, live=live)
        return cls(access, jobs, live, advance, expect, data_bytes(store.segments))

    @cached_property
    def kernels(self) -> Kernels:
        """Those for an input of this size, loaded when they are asked for."""
        return choose_kernels(self.input_bytes) if self.given is None else self.given

    def done(self, count: int) -> None:
        """`count` more bytes are done; with 0 only a chance to end the work."""
        if self.advance is not None:
            self.advance(count)

    def expects(self, count: int) -> None:
        """`count` more bytes will be done."""
        if self.expect is not None:
            self.expect(count)

    def open(self, file: StoreFile, worker: WorkerContext = ALONE) -> ByteSource:
        """A file of the log, for the thread of this worker."""
        return file.open(replace(self.access, stop=worker.stop))
