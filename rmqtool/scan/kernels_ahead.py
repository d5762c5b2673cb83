"""The kernels compiled when the package was built: the functions of `kernels`, without a compiler.

Importing it raises `ImportError`, with the reason, where they cannot be used (`ahead.target`); otherwise it
also guards mapped files, as `kernels` does. The library allocates and raises nothing (`ahead.build`); ctypes
releases the GIL during a call.
"""

from __future__ import annotations

import ctypes
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.scan.ahead import target
from rmqtool.scan.ahead.signatures import BUS_ERROR, CRC32, MAPPINGS, SIGNATURES, Array, Signature, flat
from rmqtool.scan.crc import isal_address
from rmqtool.store import faults

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Kernel = Callable[..., Any]


def _load() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """The library with its variables set, and the same with the lock of the interpreter kept in calls."""
    path = target.usable()
    crc32 = isal_address()
    if crc32 is None:
        raise ImportError("no ISA-L for CRC-32")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path}: {error}") from error
    ctypes.c_int64.in_dll(library, CRC32).value = crc32
    ctypes.c_int64.in_dll(library, MAPPINGS).value = faults.table_address()
    faults.install(_address(library[BUS_ERROR]))
    return library, ctypes.PyDLL(str(path))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _data_of(array: npt.NDArray[Any]) -> int:
    """Where the elements of an array begin: the field behind the head of NumPy's object.

    `array.ctypes.data` makes three objects on the way, and takes longer than most calls of a kernel.
    """
    return _number_at(id(array) + object.__basicsize__).value


_number_at = ctypes.c_int64.from_address
_probe = np.zeros(1)
if _data_of(_probe) != _probe.ctypes.data:
    raise ImportError("NumPy's arrays are laid out in another way")


def _bound(library: ctypes.CDLL, name: str, signature: Signature) -> Kernel:
    """A kernel as a Python function. Arrays of another type or number of dimensions are a `TypeError`."""
    function = library[name]
    function.restype = None
    wanted: list[tuple[np.dtype[Any], int] | None] = []
    taken: list[type] = []
    for one in flat(signature.arguments):
        taken.append(ctypes.c_int64)
        if isinstance(one, Array):
            wanted.append((np.dtype(one.dtype), one.dimensions))
            taken += [ctypes.c_int64] * one.dimensions
        else:
            wanted.append(None)
    function.argtypes = [*taken, _Answer]
    tuples = any(type(one) is tuple for one in signature.arguments)

    def kernel(*given: Any) -> Any:
        passed: list[Any] = []
        whole: list[tuple[Any, Any]] = []
        for one, kind in zip(flat(given) if tuples else given, wanted, strict=True):
            if kind is None:
                passed.append(int(one))
                continue
            if one.dtype != kind[0] or one.ndim != kind[1]:
                raise TypeError(f"{name}: {one.dtype} of shape {one.shape} where {kind} was expected")
            if one.flags.c_contiguous:
                passed.append(_data_of(one))
            else:  # with gaps, or column by column: the kernel works on a copy
                whole.append((one, one.copy(order="C")))
                passed.append(_data_of(whole[-1][1]))
            passed += one.shape
        answer = _Answer()
        function(*passed, answer)
        for one, copied in whole:
            if one.flags.writeable:
                one[...] = copied
        if signature.truth:
            return bool(answer[0])
        return (None, answer[0], tuple(answer))[signature.answers]

    kernel.prepared = partial(_prepared, name, signature)  # type: ignore[attr-defined]
    return kernel


def _prepared(name: str, signature: Signature, *arrays: Any) -> Callable[[], object]:
    """See `engine.prepared`."""
    for one, kind in zip(arrays, signature.arguments, strict=True):
        if not isinstance(kind, Array) or (one.dtype, one.ndim) != (np.dtype(kind.dtype), kind.dimensions):
            raise TypeError(f"{name}: {one.dtype} of shape {one.shape} where {kind} was expected")
        if not one.flags.c_contiguous:
            raise TypeError(f"{name}: an array with gaps")
    function = _quick[name]
    function.restype = None
    # objects of ctypes pass as they are, without `argtypes` and what they convert, in half the time
    given = [ctypes.c_int64(number) for one in arrays for number in (_data_of(one), *one.shape)]
    call = partial(function, *given, _Answer())
    call.arrays = arrays  # type: ignore[attr-defined]
    return call


_Answer = ctypes.c_int64 * 2

_library, _quick = _load()
HAVE_ISAL = True

_rooms = {
    room: SimpleNamespace(**{name: _bound(_library, name, one) for name, one in kernels.items()})
    for room, kernels in SIGNATURES.items()
}
building, carve, dispatch, encoding, hashes, lookup = (
    _rooms[one] for one in ("building", "carve", "dispatch", "encoding", "hashes", "lookup")
)
for _one in ("checksum", "columns", "entries", "sound", "spans", "tally", "text", "walk"):
    globals().update(vars(_rooms[_one]))
