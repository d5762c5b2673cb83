"""Seed → a copy of a small golden with some of its files bent, moved, or replaced by what is not a file."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import fixtures
from tests.fuzz.buffers import bent, number

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

GOLDENS = (
    "v498-edge", "v533-edge", "v498-tx", "v533-tx", "v533-cqext", "v498-cqext", "v533-batchcq", "b533-lmq",
    "v498-preblank", "v533-preblank", "v533-props-crc", "v533-v2", "b533-compaction", "v533-expired-all",
    "v498-compressed", "v533-rocksdb", "v498-ipv6",
)  # fmt: skip
"""of every kind one whose files together have less than a MB"""
MOST = 1 << 20
"""files longer than that are bent at their beginning only"""
NAMES = (
    "00", "-1", "+1", "00000000000000000001", "9223372036854775807", "99999999999999999999", "x" * 255,
    "a\nb", "a\x1b[2Jb", "٣", " ", "topics.json", "topics.json.bak", "00000000000000000000", "[bold]",
    "%2e%2e", "..a", os.fsdecode(b"\xff\xfe"), "checkpoint", "abort", "lock", "=1+1", "\u202eabc", "0" * 200,
    "rmqtool-apply-in-progress",
)  # fmt: skip
JSONS = (
    "{", "[]", "null", "", "\0", "[" * 5000, '{"a":' * 3000, '{"topicConfigTable":[]}',
    '{"offsetTable":{"@":{"0":1e400}}}',
    '{"topicConfigTable":{"T":{"readQueueNums":99999999999999999999,"writeQueueNums":-1}}}', "NaN",
    '{"offsetTable":{"\\ud800@g":{"99999999999":-9223372036854775809}}}',
    '{"offsetTable":{"T@g":{0:1,"x":null}}}', '{"dataVersion":{"counter":"x"},"subscriptionGroupTable":7}',
)  # fmt: skip
CONF = (
    "mapedFileSizeCommitLog", "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum",
    "maxIndexNum", "storePathCommitLog", "storePathRootDir", "enableConsumeQueueExt",
    "bitMapLengthConsumeQueueExt", "mappedFileSizeConsumeQueueExt", "brokerRole", "enableDLegerCommitLog",
    "storeType", "duplicationEnable", "maxMessageSize", "messageDelayLevel", "fileReservedTime",
    "enableMultiDispatch", "\x1b", "a\\u0000b",
)  # fmt: skip
VALUES = (
    "0", "-1", "1", "20", "300000", "1048576", "9223372036854775807", "99999999999999999999", "", "x", "true",
    "SLAVE", "/", "..", "\\u001b", "1s 2s", "1h " * 3000, "a:b,c;d", "~/x", "defaultRocksDB",
    "${user.home}/x",
)  # fmt: skip


@cache
def _unpacked(name: str, place: Path) -> Path:
    return fixtures.open_golden(name, place).path


def store(random: Random, place: Path, goldens: Path) -> tuple[Path, list[str]]:
    """The root of a store below `place`, and what was done to it."""
    name = random.choice(GOLDENS)
    root = place / "store"
    shutil.copytree(_unpacked(name, goldens), root, symlinks=True)
    done = [name]
    for _ in range(random.choice((0, 1, 1, 2, 3, 5))):
        paths = sorted(path for path in root.rglob("*") if not path.is_symlink())
        if not paths:
            break
        kind = random.choice(KINDS)
        path = random.choice(paths)
        with suppress(OSError):  # a name that this file system does not take, a directory that is not empty
            done.append(f"{kind.__name__[1:]} {str(path.relative_to(root))!r} {kind(random, path)}")
    return root, done


def configuration(random: Random, place: Path) -> Path:
    """A broker.conf with senseless settings; never one that leads to the files of this machine."""
    path = place / "broker.conf"
    lines = [
        f"{random.choice(CONF)}{random.choice('=:= ')}{random.choice(VALUES)}"
        for _ in range(random.randrange(5))
    ]
    path.write_bytes(bent(random, "\n".join(lines).encode(), random.choice((0, 0, 1, 3))))
    return path


def _bytes(random: Random, path: Path) -> str:
    if not path.is_file():
        return "-"
    with path.open("r+b") as file:
        size = min(os.fstat(file.fileno()).st_size, MOST)
        at = random.choice((0, random.randrange(size + 1), 4 * random.randrange(size // 4 + 1)))
        new = random.choice((number(random), random.randbytes(9), bytes(random.choice((1, 20, 5000)))))
        file.seek(at)
        file.write(new)
    return f"at {at}: {new[:20].hex()}"


def _shape(random: Random, path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MOST:
        return "-"
    path.write_bytes(bent(random, path.read_bytes(), random.choice((1, 3))))
    return "bent"


def _size(random: Random, path: Path) -> str:
    if not path.is_file():
        return "-"
    size = path.stat().st_size
    new = random.choice(
        (0, 1, 7, size // 2, max(size - 1, 0), size + 1, size + 20, 2 * size, 1 << 24, 1 << 33, 1 << 40)
    )
    os.truncate(path, new)
    return str(new)


def _name(random: Random, path: Path) -> str:
    new = random.choice(NAMES)
    path.rename(path.with_name(new))
    return repr(new)


def _copy(random: Random, path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MOST:
        return "-"
    new = random.choice(NAMES)
    shutil.copyfile(path, path.with_name(new))
    return repr(new)


def _gone(random: Random, path: Path) -> str:
    remove(path)
    return ""


def _text(random: Random, path: Path) -> str:
    if not path.is_file() or path.suffix not in {".json", ".bak", ""}:
        return "-"
    text = random.choice(JSONS)
    path.write_text(text, "utf-8")
    return repr(text[:40])


def _other(random: Random, path: Path) -> str:
    """Something that is neither file nor directory, or the wrong one of both, where `path` was."""
    what = random.choice(
        ("directory", "file", "fifo", "socket", "device", "full", "zero", "loop", "dangling", "up")
    )
    remove(path)
    put_other(path, what)
    return what


def put_other(path: Path, what: str) -> None:
    """Makes one of the things that a store does not have."""
    targets = {"full": "/dev/full", "zero": "/dev/zero", "loop": path.name, "dangling": "nowhere", "up": ".."}
    if what == "directory":
        path.mkdir()
    elif what == "file":
        path.write_bytes(b"x" * 50)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "device":  # /dev/zero; only root makes one
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    elif what == "socket":
        here = os.open(path.parent, os.O_RDONLY)  # the name of a socket has 107 bytes at most
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)
    else:
        path.symlink_to(targets[what])


def remove(path: Path) -> None:
    """A file, link or whole directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


KINDS: tuple[Callable[[Random, Path], str], ...] = (
    _bytes, _bytes, _bytes, _shape, _size, _size, _name, _copy, _gone, _text, _text, _other,
)  # fmt: skip
