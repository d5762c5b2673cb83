from __future__ import annotations

import errno
import os
import socket
import threading

import numpy as np
import pytest

from rmqtool.errors import StoreIOError, UnreadableError, UsageError
from rmqtool.store.access import open_source
from rmqtool.store.bytes import BLOCK, MemorySource, PreadSource
from rmqtool.store.mapped import MappedSource
from tests.disks import break_blocks, refuse

DATA = bytes(range(256)) * 64


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "00000000000000000000"
    path.write_bytes(DATA)
    return path


def sources(file):
    return [open_source(file, "map"), open_source(file, "pread"), open_source(file), MemorySource(DATA)]


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        (0, 0),
        (0, 7),
        (0, len(DATA)),
        (100, 300),
        (len(DATA) - 3, 10),
        (len(DATA), 5),
        (len(DATA) + 9, 5),
        (0, 1 << 62),
    ],
)
def test_all_sources_give_the_same_window(file, offset, length):
    for source in sources(file):
        with source:
            assert source.size == len(DATA)
            window = source.window(offset, length)
            assert window.dtype == np.uint8
            assert window.tobytes() == DATA[offset : offset + length]


def test_negative_arguments_are_refused(file):
    for source in sources(file):
        with source:
            for offset, length in ((-1, 4), (4, -1)):
                with pytest.raises(ValueError, match="negative"):
                    source.window(offset, length)


def test_windows_cannot_be_written(file):
    for source in sources(file):
        with source:
            window = source.window(0, 16)
            with pytest.raises(ValueError, match="read-only"):
                window[0] = 1


def test_kinds_of_source(file):
    with open_source(file, "map") as mapped, open_source(file, "pread") as read:
        assert isinstance(mapped, MappedSource)
        assert isinstance(read, PreadSource)
        assert mapped.name == str(file)
    with open_source(file, name="commitlog/0") as source:
        assert source.name == "commitlog/0"


def test_closing_twice_and_a_window_that_outlives_its_source(file):
    source = open_source(file, "map")
    window = source.window(10, 4)
    source.close()
    source.close()
    assert window.tobytes() == DATA[10:14]
    assert source.window(0, 4).size == 0


@pytest.mark.parametrize("mode", ["map", "pread", "auto"])
def test_empty_file(tmp_path, mode):
    path = tmp_path / "empty"
    path.touch()
    with open_source(path, mode) as source:
        assert source.size == 0
        assert source.window(0, 100).size == 0


@pytest.mark.parametrize("mode", ["map", "pread"])
def test_file_that_shrinks_gives_a_short_window(file, mode):
    with open_source(file, mode) as source:
        os.truncate(file, 5000)
        assert source.window(4000, 4000).tobytes() == DATA[4000:5000]
        assert source.window(9000, 10).size == 0


def test_bad_block_is_an_error_with_its_range(file, monkeypatch):
    break_blocks(monkeypatch, {file: [2]})
    with open_source(file, "pread", name="commitlog/0") as source:
        with pytest.raises(UnreadableError, match="Input/output error") as caught:
            source.window(100, len(DATA) - 100)
        assert (caught.value.path, caught.value.offset, caught.value.length) == (
            "commitlog/0",
            2 * BLOCK,
            BLOCK,
        )
        assert source.window(0, 2 * BLOCK).tobytes() == DATA[: 2 * BLOCK]
        assert source.window(3 * BLOCK, BLOCK).tobytes() == DATA[3 * BLOCK : 4 * BLOCK]


def test_other_read_errors_are_io_errors(file, monkeypatch):
    with open_source(file, "pread") as source:
        refuse(monkeypatch, "preadv")
        with pytest.raises(StoreIOError, match="Permission denied"):
            source.window(0, 1)


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("mode", ["pread", "auto"])
def test_a_file_that_is_open_and_cannot_be_looked_at(file, monkeypatch, mode, looks):
    """As with a server that lost it (ESTALE): an error that says so, and no descriptor left open."""
    seen: list[object] = []
    before = len(os.listdir("/proc/self/fd"))
    refuse(monkeypatch, "fstat", errno.ESTALE, lambda *given: seen.append(given) or len(seen) == looks)
    with pytest.raises(StoreIOError, match="Stale file handle"):
        open_source(file, mode)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_length_of_a_file_that_cannot_be_asked_any_more(file, monkeypatch):
    with open_source(file, "pread") as source:
        refuse(monkeypatch, "lseek", errno.ESTALE)
        with pytest.raises(StoreIOError, match="Stale file handle"):
            source.size_now()


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        open_source(tmp_path / "none")
    with pytest.raises(UsageError, match="is a directory"):
        open_source(tmp_path)


def test_permission_denied(file, monkeypatch):
    refuse(monkeypatch, "open")
    with pytest.raises(StoreIOError, match="Permission denied"):
        open_source(file)


def test_a_fifo_a_socket_and_a_device_do_not_hang(tmp_path):
    fifo, sock = tmp_path / "fifo", tmp_path / "sock"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(sock))
        for path, what in ((fifo, "FIFO"), (sock, "socket"), ("/dev/null", "character device")):
            caught: list[Exception] = []
            thread = threading.Thread(target=lambda p=path, c=caught: c.append(_error_of(p)), daemon=True)
            thread.start()
            thread.join(10)
            assert not thread.is_alive(), f"opening {what} hangs"
            assert isinstance(caught[0], UsageError)
            assert what in str(caught[0])


def _error_of(path):
    try:
        open_source(path)
    except UsageError as error:
        return error
    return None


def test_a_mapping_that_fails_becomes_pread(file, monkeypatch):
    import mmap

    def refuse(*_args, **_kwargs):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with open_source(file) as source:
        assert isinstance(source, PreadSource)
        assert source.window(0, 3).tobytes() == DATA[:3]
    with pytest.raises(StoreIOError, match="cannot be mapped"):
        open_source(file, "map")


def test_holes_are_skipped(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as stream:
        stream.seek(1 << 20)
        stream.write(b"x")
        stream.truncate(4 << 20)
    with open_source(path, "pread") as source:
        start = source.next_data(0)
        assert start is not None
        assert not source.window(0, start).any()
        assert source.next_data(source.size) is None
