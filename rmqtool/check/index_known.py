"""Which index files can be checked: their slots and items, from settings, content or siblings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from formats.index import FIRST_ITEM, file_size
from rmqtool.check.findings import Finding, finding
from rmqtool.check.index_reading import IndexFile
from rmqtool.errors import RmqtoolError
from rmqtool.scan.index import read_header
from rmqtool.store.geometry import Source
from rmqtool.store.holes import is_zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_HEADER = 40


def known_files(store: Store) -> tuple[list[IndexFile], list[Finding]]:
    """Index files whose slots and items are known, in name order, and what is to be said of the others."""
    geometry = store.index_geometry
    exact = {
        file.path: (one.slots, one.items, one.source)
        for file in store.index_files()
        if (one := geometry[file.path]).slots is not None
        and one.items is not None
        and file_size(one.slots, one.items) == file.size
    }
    given = [(slots, items) for slots, items, source in exact.values() if source is Source.GIVEN]
    votes = Counter((slots, items) for slots, items, _ in exact.values())
    usual = given[0] if given else votes.most_common(1)[0][0] if votes else None
    found: list[IndexFile] = []
    remarks: list[Finding] = []
    for file in store.index_files():
        length = file_size(*usual) if usual else file.size
        if file.size == 0:
            continue
        if file.size != length:
            remarks.append(_wrong_size(file, length))
        own = exact.get(file.path)
        if own is not None and file.size != length:
            found.append(IndexFile(file, own[0], own[1], length))
        elif usual is not None:
            found.append(IndexFile(file, *usual, length))
        else:
            remarks += _unknown(file, geometry[file.path].detail)
    return found, remarks


def _wrong_size(file: StoreFile, length: int) -> Finding:
    start, end = sorted((file.size, length))
    return finding(
        "IDX-SIZE",
        path=file.display_path,
        position=start,
        length=end - start,
        expected=length,
        found=file.size,
    )


def _unknown(file: StoreFile, why: str) -> Iterator[Finding]:
    """A file whose slots and items nobody can tell is not checked; one without any has nothing to check."""
    try:
        with file.open("pread") as source:
            header = read_header(source)
            counted = header is not None and header.index_count > FIRST_ITEM
            holds = counted or not is_zero(source, _HEADER)
    except RmqtoolError as error:
        yield finding(
            "IDX-UNREADABLE", path=file.display_path, position=0, length=file.size, found=str(error)
        )
        return
    if holds:
        yield finding("IDX-GEOMETRY", path=file.display_path, found=why)
