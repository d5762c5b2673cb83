"""The library with the kernels that were compiled ahead: where it lies, and whether it may be loaded.

It lies beside this module, and `kernels.json` says what it was made of. It is loaded only if this package's
sources are those, its bytes are those that were built, the processor has what it needs, and nobody but this
user and root may change it: a library is code.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
from pathlib import Path

from rmqtool.scan.cache import digest_of_sources
from rmqtool.store.trust import foreign_component

PLACE = Path(__file__).parent
LIBRARY, MANIFEST = "kernels.so", "kernels.json"

PROCESSOR = "x86-64-v3"
"""LLVM's name of the least processor that it runs on"""

FEATURES = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
"""what /proc/cpuinfo says of one"""


def supported() -> bool:
    """Whether there can be a library for this system."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8


def write(library: bytes, place: Path = PLACE) -> None:
    """Puts a library, and last what says that it is right, in the place of an earlier one."""
    (place / MANIFEST).unlink(missing_ok=True)
    known = {"sources": digest_of_sources(), "library": hashlib.sha256(library).hexdigest()}
    for name, data in ((LIBRARY, library), (MANIFEST, f"{json.dumps(known, indent=1)}\n".encode())):
        new = place / f"{name}.{os.getpid()}"
        new.write_bytes(data)
        new.chmod(0o644)
        new.replace(place / name)  # a process that has the old file loaded keeps it


def usable(place: Path = PLACE) -> Path:
    """The library, where it may be loaded. Raises `ImportError`, which says why not."""
    if not supported():
        raise ImportError("only for 64-bit Linux on x86")
    if not has_features("/proc/cpuinfo"):
        raise ImportError(f"this processor is less than {PROCESSOR}")
    path = place / LIBRARY
    try:
        foreign = foreign_component(path) or foreign_component(place / MANIFEST)
        known = json.loads((place / MANIFEST).read_bytes())
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise ImportError(f"not built in {place}") from error
    if foreign is not None:
        raise ImportError(f"another user may change {foreign}")
    if known.get("sources") != digest_of_sources():
        raise ImportError("built of other sources")
    if known.get("library") != found:
        raise ImportError(f"{path} is not what was built")
    return path


def has_features(cpuinfo: str) -> bool:
    """Whether the processor of this machine has what the library needs."""
    try:
        with open(cpuinfo, encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return set(flags.partition(":")[2].split()) >= FEATURES
