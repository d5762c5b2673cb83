"""What Python cannot say: unaligned big-endian loads, bit counts, compares of 64 bytes at once.

All work on addresses and check nothing; the caller has made sure that the bytes are there.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _load(bits: int, swap: bool):
    """An unaligned load of `bits` at an address; with `swap` a big-endian field, sign extended to int64."""
    result = types.int64 if swap else types.uint64

    @intrinsic
    def load(typing_context, address):
        def build(context, builder, signature, arguments):
            integer = ir.IntType(bits)
            value = builder.load(builder.inttoptr(arguments[0], integer.as_pointer()))
            value.align = 1
            if swap and bits > 8:
                value = builder.bswap(value)
            if bits == 64:
                return value
            return builder.sext(value, ir.IntType(64)) if swap else builder.zext(value, ir.IntType(64))

        return result(types.int64), build

    return load


be64 = _load(64, True)
be32 = _load(32, True)
be16 = _load(16, True)
i8 = _load(8, True)
u64 = _load(64, False)
u32 = _load(32, False)
u8 = _load(8, False)


@intrinsic
def copy(typing_context, target, source, length):
    """Copies `length` bytes, 0 or more, between addresses that do not overlap."""

    def build(context, builder, signature, arguments):
        to, at = (builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, at, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def copy32(typing_context, target, source):
    """Copies 32 bytes between addresses."""

    def build(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(8), 32)
        to, at = (builder.inttoptr(address, vector.as_pointer()) for address in arguments)
        value = builder.load(at)
        stored = builder.store(value, to)
        value.align = stored.align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@intrinsic
def trailing_zeros(typing_context, value):
    """Place of the lowest bit that is set; `value` is not 0."""

    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), build


@intrinsic
def popcount(typing_context, value):
    """How many bits are set."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


def _vector(builder, address, width=64):
    vector = ir.VectorType(ir.IntType(8), width)
    value = builder.load(builder.inttoptr(address, vector.as_pointer()))
    value.align = 1
    return value


@intrinsic
def equal64(typing_context, address, byte):
    """Bit k is set where byte k of the 64 at `address` equals `byte`."""

    def build(context, builder, signature, arguments):
        value = _vector(builder, arguments[0])
        first = builder.insert_element(ir.Constant(value.type, ir.Undefined), arguments[1], ir.IntType(32)(0))
        indices = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(first, ir.Constant(value.type, ir.Undefined), indices)
        return builder.bitcast(builder.icmp_unsigned("==", value, wanted), ir.IntType(64))

    return types.uint64(types.int64, types.uint8), build


def _illegal(width: int):
    """Bit k is set where byte k of the `width` at an address is none of `legal.TOPIC_CHARACTERS`."""

    @intrinsic
    def illegal(typing_context, address):
        def build(context, builder, signature, arguments):
            value = _vector(builder, arguments[0], width)

            def splat(byte):
                return ir.Constant(value.type, [byte] * width)

            letter = builder.sub(builder.or_(value, splat(0x20)), splat(ord("a")))
            legal = builder.icmp_unsigned("<", letter, splat(26))
            digit = builder.sub(value, splat(ord("0")))
            legal = builder.or_(legal, builder.icmp_unsigned("<", digit, splat(10)))
            for character in b"%|_-":
                legal = builder.or_(legal, builder.icmp_unsigned("==", value, splat(character)))
            found = builder.not_(builder.bitcast(legal, ir.IntType(width)))
            return found if width == 64 else builder.zext(found, ir.IntType(64))

        return types.uint64(types.int64), build

    return illegal


illegal32, illegal64 = _illegal(32), _illegal(64)


@intrinsic
def high64(typing_context, address):
    """Bit k is set where byte k of the 64 at `address` is not ASCII."""

    def build(context, builder, signature, arguments):
        value = _vector(builder, arguments[0])
        zero = ir.Constant(value.type, [0] * 64)
        return builder.bitcast(builder.icmp_signed("<", value, zero), ir.IntType(64))

    return types.uint64(types.int64), build


def _store(bits: int):
    """An unaligned store of the low `bits` of an int64 as a big-endian field at an address."""

    @intrinsic
    def store(typing_context, address, value):
        def build(context, builder, signature, arguments):
            integer = ir.IntType(bits)
            field = arguments[1] if bits == 64 else builder.trunc(arguments[1], integer)
            field = field if bits == 8 else builder.bswap(field)
            stored = builder.store(field, builder.inttoptr(arguments[0], integer.as_pointer()))
            stored.align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), build

    return store


put64 = _store(64)
put32 = _store(32)
put16 = _store(16)
put8 = _store(8)


def _prefetch(write: bool):
    """Begin to bring the line at an address into the cache; nothing happens where none may be read."""

    @intrinsic
    def prefetch(typing_context, address):
        def build(context, builder, signature, arguments):
            pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
            place = builder.inttoptr(arguments[0], pointer)
            builder.call(function, [place, number(int(write)), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(types.int64), build

    return prefetch


prefetch_to_read = _prefetch(False)
prefetch_to_write = _prefetch(True)


def on_stack(count: int):
    """Room for `count` int64 that lasts as long as the kernel that asks for it; nothing is set."""

    @intrinsic
    def room(typing_context):
        def build(context, builder, signature, arguments):
            whole = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(64), count))
            return builder.bitcast(whole, ir.IntType(64).as_pointer())

        return types.CPointer(types.int64)(), build

    return room
