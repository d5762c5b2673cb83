"""What all formats share: schemas, what is derived from them, hosts, the masked CRC-32.

All integers in a store are big-endian two's complement. The Java text rules of `formats.java` are offered
here too.
"""

from __future__ import annotations

import ipaddress
import struct
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import construct as cs
import crcmod
import numpy as np

from formats.errors import FormatError
from formats.java import (
    java_abs,
    java_hash,
    java_hashmap_order,
    java_parse_int,
    java_split,
    java_utf8_decode,
    java_utf8_encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Buffer

    AnyConstruct: TypeAlias = cs.Construct[Any, Any]
    Container: TypeAlias = cs.Container[Any]
    _Subconstruct = cs.Subconstruct[Any, Any, Any, Any]
    _Construct = cs.Construct[Any, Any]
else:
    _Subconstruct = cs.Subconstruct
    _Construct = cs.Construct

Parsed: TypeAlias = Any
"""What a schema parses to: mostly a `construct.Container`; construct has no static types for it."""

__all__ = [
    "HostV4",
    "HostV6",
    "Parsed",
    "Require",
    "Schema",
    "crc32_masked",
    "dtype_of",
    "host_text",
    "java_abs",
    "java_hash",
    "java_hashmap_order",
    "java_parse_int",
    "java_split",
    "java_utf8_decode",
    "java_utf8_encode",
    "offset_of",
    "sizeof",
]

_crc32 = crcmod.mkCrcFun(0x104C11DB7, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
_BUILD_ERRORS = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def crc32_masked(data: bytes) -> int:
    """CRC-32 (PKZIP) with the top bit cleared, as `UtilAll#crc32`; 0 for no bytes."""
    return int(_crc32(data)) & 0x7FFFFFFF


class Schema(_Subconstruct):
    """A construct that fails with a `FormatError` carrying the dotted path of the field, and nothing else.

    It nests in other constructs like the one that it wraps.
    """

    def parse(self, data: Buffer, **context: object) -> Parsed:
        """The value at the start of `data` (any buffer, taken whole); bytes behind it are not looked at."""
        return super().parse(bytes(data), **context)

    def parse_stream(self, stream: IO[bytes], **context: object) -> Parsed:
        """The value where a seekable stream stands, which then stands behind it."""
        try:
            return super().parse_stream(stream, **context)
        except cs.ConstructError as error:
            raise _format_error(error) from error

    def parse_exact(self, data: Buffer, **context: object) -> Parsed:
        """As `parse`, for a buffer that has to hold this value and nothing else."""
        raw = bytes(data)
        whole = cs.Struct("value" / self.subcon, "end" / cs.Tell)
        try:
            parsed = whole.parse(raw, **context)
        except cs.ConstructError as error:
            raise _format_error(error, skip=1) from error
        if parsed.end != len(raw):
            raise FormatError(f"{len(raw) - parsed.end} bytes are left behind {parsed.end}")
        return parsed.value

    def build(self, obj: Parsed, **context: object) -> bytes:
        """The bytes of a mapping (or value) with the fields of the schema."""
        try:
            return super().build(obj, **context)
        except cs.ConstructError as error:
            raise _format_error(error) from error
        except _BUILD_ERRORS as error:
            raise FormatError(f"cannot be built ({type(error).__name__}: {error})") from error


class Require(_Construct):
    """A rule about a field read before: `rule(context)` gives a complaint, or None. Takes no bytes."""

    def __init__(self, field: str, rule: Callable[[Container], str | None]) -> None:
        super().__init__()
        self.field = field
        self.rule = rule
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Container, path: str) -> None:  # noqa: ARG002
        complaint = self.rule(context)
        if complaint is not None:
            raise cs.CheckError(complaint, path=f"{path} -> {self.field}")

    def _build(self, obj: Parsed, stream: IO[bytes], context: Container, path: str) -> Parsed:
        self._parse(stream, context, path)
        return obj

    def _sizeof(self, context: Container, path: str) -> int:  # noqa: ARG002
        return 0


def _format_error(error: cs.ConstructError, skip: int = 0) -> FormatError:
    names = (error.path or "").split(" -> ")[1 + skip :]
    reason = str(error.args[0] if error.args else error).split("\n")[-1]
    return FormatError(reason, ".".join(names))


def _unwrap(schema: AnyConstruct) -> AnyConstruct:
    """The construct that has a layout of its own, without the names, constants and adapters around it."""
    while isinstance(schema, cs.Subconstruct) and not isinstance(schema, cs.Array | cs.Padded):
        schema = schema.subcon
    return schema


def _count(array: cs.Array[Any, Any]) -> int:
    if callable(array.count):
        raise FormatError("the number of elements is not fixed")
    return array.count


@lru_cache(maxsize=1024)
def sizeof(schema: AnyConstruct) -> int:
    """Length in bytes of a schema of fixed length; FormatError for a variable one."""
    try:
        return int(schema.sizeof())
    except (cs.ConstructError, AttributeError, KeyError) as error:
        raise FormatError("has no fixed length") from error


def offset_of(schema: AnyConstruct, field: str) -> int:
    """Byte offset of a field from the start of the schema.

    `field` is a name, or a dotted path into nested schemas (`born_host.port`; `items.3` for an element).
    All fields in front of it need a fixed length.
    """
    offset = 0
    current = _unwrap(schema)
    for name in field.split("."):
        if isinstance(current, cs.Array):
            if not (name.isdecimal() and int(name) < _count(current)):
                raise FormatError("no such element", field)
            offset += int(name) * sizeof(current.subcon)
            current = _unwrap(current.subcon)
            continue
        if not isinstance(current, cs.Struct):
            raise FormatError("has no fields", field)
        for member in current.subcons:
            if member.name == name:
                current = _unwrap(member)
                break
            offset += sizeof(member)
        else:
            raise FormatError("no such field", field)
    return offset


def dtype_of(schema: AnyConstruct) -> np.dtype[Any]:
    """The NumPy dtype with the same bytes as a schema of fixed length: packed, big-endian.

    Widths come from `sizeof`, not from the letters of `struct`, whose `l` has 8 bytes in NumPy. `Bytes`
    becomes a void type, `Array` a sub-array; members without a name only take room.
    """
    inner = _unwrap(schema)
    if isinstance(inner, cs.Struct):
        return _struct_dtype(inner)
    if isinstance(inner, cs.Array):
        return np.dtype((dtype_of(inner.subcon), (_count(inner),)))
    size = sizeof(inner)
    if isinstance(inner, cs.FormatField):
        letter = inner.fmtstr[-1]
        kind = "f" if letter in "efd" else "u" if letter.isupper() else "i"
        return np.dtype(f">{kind}{size}")
    if isinstance(inner, cs.Bytes | cs.Padded):
        return np.dtype(f"V{size}")
    raise FormatError(f"{type(inner).__name__} has no NumPy type")


def _struct_dtype(schema: cs.Struct) -> np.dtype[Any]:
    names, formats, offsets, position = [], [], [], 0
    for member in schema.subcons:
        if member.name is not None:
            names.append(member.name)
            formats.append(dtype_of(member))
            offsets.append(position)
        position += sizeof(member)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": position})


HostV4 = Schema(cs.Struct("ip" / cs.Bytes(4), "port" / cs.Int32sb))
"""Address and port of a host; the port takes 32 bits although 16 are used."""

HostV6 = Schema(cs.Struct("ip" / cs.Bytes(16), "port" / cs.Int32sb))


def host_text(ip: bytes, port: int) -> str:
    """`10.0.0.1:10911`, or `[2001:db8::1]:10911`; FormatError unless `ip` has 4 or 16 bytes."""
    if len(ip) not in (4, 16):
        raise FormatError(f"{len(ip)} bytes are not an IP address", "ip")
    address = ipaddress.ip_address(bytes(ip))
    return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"


class Flat:
    """A schema of fixed length as one `struct`: for single records many times as fast as construct.

    Fields of an inner schema are named `outer.inner`; members without a name are zeros.
    """

    def __init__(self, schema: AnyConstruct) -> None:
        self.names: list[str] = []
        self._struct = struct.Struct(">" + self._letters(dtype_of(schema), ""))
        self.size = self._struct.size
        self.pack_ordered = self._struct.pack
        """as `pack`, of the values in the order of `names`"""
        self.unpack_from = self._struct.unpack_from
        """the values in that order, from a place in some bytes on"""
        self.iter_unpack = self._struct.iter_unpack
        """the values of one after the other in some bytes"""

    def _letters(self, dtype: np.dtype[Any], prefix: str) -> str:
        letters, at = "", 0
        for name, (inner, offset, *_) in (dtype.fields or {}).items():
            letters += f"{offset - at}x" if offset > at else ""
            at = offset + inner.itemsize
            if inner.fields is not None:
                letters += self._letters(inner, f"{prefix}{name}.")
                continue
            self.names.append(prefix + name)
            integers = "bhiq" if inner.kind == "i" else "BHIQ"
            letters += f"{at - offset}s" if inner.kind == "V" else integers[inner.itemsize.bit_length() - 1]
        return letters + (f"{dtype.itemsize - at}x" if dtype.itemsize > at else "")

    def many(self, number: int) -> struct.Struct:
        """So many behind each other, none of which may have padding; values as of `unpack_from`."""
        return struct.Struct(">" + self._struct.format[1:] * number)

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """The bytes of these values. Raises `struct.error` for one that does not fit."""
        return self._struct.pack(*[values[name] for name in self.names])

    def unpack(self, data: bytes) -> dict[str, Any]:
        """The values of the bytes in front of `data`, by name."""
        return dict(zip(self.names, self._struct.unpack_from(data), strict=True))
