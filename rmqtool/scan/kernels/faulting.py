"""The answer to SIGBUS in a mapped file: a page of zeros, and a count that the reader asks for.

See `rmqtool.store.faults` for the table. The handler is compiled, needs no lock and no interpreter, and calls
`mmap` and `sigaction` only, so that it may run in any thread at any instruction, in a kernel, in NumPy or in
ISA-L; the instruction that failed is then done again.
"""

from __future__ import annotations

import ctypes
import mmap

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rmqtool.scan.ahead.signatures import MAPPINGS
from rmqtool.scan.kernels.compiler import callback
from rmqtool.store import faults

_ADDRESS_IN_SIGINFO = 16
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
"""what is written there is lost, and whoever wrote asks for the count"""
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
"""0x10: MAP_FIXED, which takes the place of what is mapped there"""

_BYTES = 8
_PAGE_SIZE, _USED, _PREVIOUS, _TOTAL = (
    place * _BYTES for place in (faults.PAGE_SIZE, faults.USED, faults.PREVIOUS, faults.TOTAL)
)
_FIRST, _WIDTH = faults.FIRST_SLOT * _BYTES, faults.WIDTH * _BYTES
_START, _END, _FAULTS = (place * _BYTES for place in (faults.START, faults.END, faults.FAULTS))

# by name, so that a handler from the cache of an earlier run finds the table of this one
_address = ctypes.c_int64(faults.table_address())
llvm.add_symbol(MAPPINGS, ctypes.addressof(_address))

_mmap = types.ExternalFunction(
    "mmap", types.int64(types.int64, types.int64, types.int32, types.int32, types.int32, types.int64)
)
_sigaction = types.ExternalFunction("sigaction", types.int32(types.int32, types.int64, types.int64))


@intrinsic
def _table(typing_context):
    """Address of the table."""

    def build(context, builder, signature, arguments):
        module = builder.module
        address = module.globals.get(MAPPINGS) or ir.GlobalVariable(module, ir.IntType(64), MAPPINGS)
        return builder.load(address)

    return types.int64(), build


@intrinsic
def _load(typing_context, address):
    def build(context, builder, signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), build


@intrinsic
def _count(typing_context, address):
    """One more; several threads may do so at once."""

    def build(context, builder, signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(types.int64), build


@callback(types.void(types.int32, types.int64, types.int64))
def on_bus_error(signal, info, context):
    """`sa_sigaction` for SIGBUS."""
    table = _table()
    address = _load(info + _ADDRESS_IN_SIGINFO)
    slot = table + _FIRST
    last = slot + _load(table + _USED) * _WIDTH
    while slot < last:
        if _load(slot + _START) <= address and address < _load(slot + _END):
            size = _load(table + _PAGE_SIZE)
            page = address & -size
            if _mmap(page, size, _PROTECTION, _FLAGS, -1, 0) == page:
                _count(slot + _FAULTS)
                _count(table + _TOTAL)
                return
        slot += _WIDTH
    # no page of ours: as it would have been without this handler, when the instruction is done again
    _sigaction(signal, _load(table + _PREVIOUS), 0)


faults.install(on_bus_error.address)
