"""The two kernel modules against each other on arbitrary bytes, and the compiled one against a guard page."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import strategies as st

from formats.commitlog import (
    BLANK_MAGIC_CODE,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    Blank,
    encode_message,
)
from formats.properties import decode_pairs
from rmqtool.scan.ahead.signatures import SIGNATURES
from rmqtool.scan.fields import (
    ROW_WIDTH,
    STATUS_WIDTH,
    SUMMARISED,
    TEXTS,
    Alike,
    Check,
    Field,
    Issue,
    Status,
    Stop,
    Summary,
)
from tests.helpers import ROOT
from tests.scan.conftest import ahead_kernels, compiled_kernels, numba_kernels
from tests.scan.guarded import CALLED, COLUMNS, KERNELS, guarded_inputs
from tests.scan.tools import PROPERTIES, array, check_property, declared_row, find, logs, messages, scan, walk

if TYPE_CHECKING:
    from types import ModuleType

    Both = tuple[ModuleType, ModuleType]

MAGICS = [
    code.to_bytes(4, "big", signed=True)
    for code in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2, BLANK_MAGIC_CODE)
]
NEAR_MAGICS = [b"\xda\xa3\x20", b"\xcb\xd4\x31", b"\xda\xda\xa3\x20\xa7", b"\xda", b"\xcb"]


@st.composite
def blanks(draw: st.DrawFn) -> bytes:
    return bytes(Blank.build({"total_size": draw(st.integers(0, 300))}))


@st.composite
def damaged(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(source))
    for _ in range(draw(st.integers(0, 3)) if data else 0):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1]))
    return bytes(data)


PIECES = (
    st.sampled_from(MAGICS + NEAR_MAGICS)
    | st.binary(max_size=20)
    | st.integers(0, 200).map(bytes)
    | blanks()
    | logs(max_records=2)
    | damaged(logs(max_records=2))
)
SOUP = st.lists(PIECES, max_size=6).map(b"".join)


def test_walk_on_any_bytes(both: Both, effort: int) -> None:
    def prop(data: bytes, start: int, behind: int, checks: Check) -> None:
        start = min(start, len(data))
        given = {"start": start, "file_size": len(data) + behind, "checks": checks}
        twin, compiled = (walk(kernels, data, **given) for kernels in both)
        assert compiled == twin
        assert twin.position <= len(data)

    behind = st.sampled_from([0, 1, 7, 8, 100, 1 << 30])
    check_property(prop, SOUP, st.integers(0, 100), behind, st.sampled_from(Check), examples=150 * effort)


def test_find_record_on_any_bytes(both: Both, effort: int) -> None:
    def prop(data: bytes, start: int, behind: int, shift: int, base: int, any_offset: bool) -> None:
        start = min(start, len(data))
        given = {"start": start, "file_size": len(data) + behind, "shift": shift, "base": base}
        twin, compiled = (find(kernels, data, **given, any_offset=any_offset) for kernels in both)
        assert compiled == twin
        hit, position, _stop, _, row = twin
        assert start <= position <= len(data)
        if row is not None:
            expected = declared_row(data, position, base)
            expected[Field.ISSUES] &= ~Issue.OFFSET  # a search compares with its own shift
            assert (hit, row) == (1, expected)

    behind = st.sampled_from([0, 0, 1, 7, 8, 1000])
    near = st.sampled_from([0, 0, 1, -1, 300])
    arguments = SOUP, st.integers(0, 100), behind, near, near, st.booleans()
    check_property(prop, *arguments, examples=200 * effort)


def test_find_record_cut_inside_of_a_candidate(kernels: ModuleType) -> None:
    """Every window that ends in a record says so, unless the magic is not in it yet."""
    record = encode_message("TopicTest", b"hello" * 20, b"TAGS\x01A\x02", physical_offset=10)
    data = b"x" * 10 + record + bytes(200)
    for size in range(18, 10 + len(record)):
        hit, position, stop, wanted, _ = find(kernels, data[:size], file_size=len(data))
        assert (hit, position, stop) == (0, 10, Stop.NEED_MORE)
        assert wanted is not None
        assert size - 10 < wanted <= len(record)
    for size in (8, 14, 17):
        hit, position, stop, _, _ = find(kernels, data[:size], file_size=len(data))
        assert (hit, position, stop) == (0, size - 7, Stop.END)
    assert find(kernels, data)[:3] == (1, 10, Stop.ROWS_FULL)


def test_find_record_passes_over_what_is_not_right(kernels: ModuleType) -> None:
    right = encode_message("TopicTest", b"hello" * 20, b"TAGS\x01A\x02", physical_offset=1000)
    wrong = {
        "body": right.replace(b"hello", b"hallo", 1),
        "place": encode_message("TopicTest", b"hello" * 20, physical_offset=1001),
        "frame": (len(right) + 1).to_bytes(4, "big") + right[4:],
        "blank": bytes(Blank.build({"total_size": 77})),
    }
    assert find(kernels, right, base=1000)[:3] == (1, 0, Stop.ROWS_FULL)
    for what, data in wrong.items():
        assert find(kernels, data + bytes(300), base=1000)[0] == 0, what
    assert find(kernels, wrong["place"], base=1000, shift=1)[:3] == (1, 0, Stop.ROWS_FULL)
    assert find(kernels, wrong["place"], base=1000, any_offset=True)[:3] == (1, 0, Stop.ROWS_FULL)
    for topic in ("Topic Test", ""):  # enough at its own place, where the CRC and the offset vouch for it
        odd = encode_message(topic, b"hello", physical_offset=1000)
        assert find(kernels, odd, base=1000)[:3] == (1, 0, Stop.ROWS_FULL)
        assert find(kernels, odd + bytes(300), base=1000, any_offset=True)[0] == 0
    blank = bytes(Blank.build({"total_size": 30})).ljust(30, b"?")
    assert find(kernels, b"ab" + blank)[:3] == (1, 2, Stop.BLANK)


@pytest.mark.parametrize("before", [0, 1, 55, 56, 57, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("filler", [0, 0x61, 0xDA, 0xCB])
def test_find_record_behind_fillers_of_every_length(kernels: ModuleType, before: int, filler: int) -> None:
    record = encode_message("T", b"x", physical_offset=before)
    for behind in (0, 1, 63, 64, 100):
        data = bytes([filler]) * before + record + bytes([filler]) * behind
        assert find(kernels, data)[:3] == (1, before, Stop.ROWS_FULL)


def test_first_nonzero(both: Both, effort: int) -> None:
    def prop(zeros: int, rest: bytes, start: int) -> None:
        data = bytes(zeros) + rest
        start = min(start, len(data))
        expected = next((at for at in range(start, len(data)) if data[at]), len(data))
        for kernels in both:
            assert kernels.first_nonzero(array(data), start) == expected

    rests = st.binary(max_size=70) | st.tuples(st.integers(0, 70), st.binary(max_size=2)).map(
        lambda pair: bytes(pair[0]) + pair[1]
    )
    check_property(prop, st.integers(0, 300), rests, st.integers(0, 400), examples=150 * effort)


@pytest.mark.parametrize("at", [0, 65535, 65536, 65537, 131071, 199999])
def test_first_nonzero_in_a_large_buffer(kernels: ModuleType, at: int) -> None:
    data = np.zeros(200_000, np.uint8)
    assert kernels.first_nonzero(data, 0) == data.size
    data[at] = 0x80
    assert kernels.first_nonzero(data, 0) == at
    assert kernels.first_nonzero(data, at) == at
    assert kernels.first_nonzero(data, at + 1) == data.size


def test_gather(both: Both, effort: int) -> None:
    def prop(data: bytes, places: list[tuple[int, int]]) -> None:
        kept = [(min(at, len(data)), length) for at, length in places]
        kept = [(at, min(length, len(data) - at)) for at, length in kept]
        positions = np.array([at for at, _ in kept], np.int64)
        lengths = np.array([length for _, length in kept], np.int64)
        parts = [data[at : at + length] if length > 0 else b"" for at, length in kept]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        for kernels in both:
            offsets = np.full(len(kept) + 1, -9, np.int32)
            out = np.full(ends[-1], 0x3F, np.uint8)
            assert kernels.gather(array(data), positions, lengths, offsets, out) == ends[-1]
            assert offsets.tolist() == ends
            assert out.tobytes() == b"".join(parts)

    places = st.lists(st.tuples(st.integers(0, 120), st.integers(-2, 60)), max_size=9)
    check_property(prop, st.binary(max_size=120), places, examples=100 * effort)


def test_message_ids(both: Both, effort: int) -> None:
    def prop(data: bytes, ids: list[tuple[int, bool, int]]) -> None:
        widths = np.array([20 if wide else 8 for _, wide, _ in ids], np.int64)
        places = np.array([at for at, _, _ in ids], np.int64)
        offsets = np.array([offset for _, _, offset in ids], np.int64)
        reported = [
            data[at : at + width].hex() + offset.to_bytes(8, "big", signed=True).hex()
            for at, width, offset in zip(places.tolist(), widths.tolist(), offsets.tolist(), strict=True)
        ]
        for kernels in both:
            out = np.zeros(sum(map(len, reported)), np.uint8)
            kernels.message_ids(array(data), places, widths, offsets, out)
            assert out.tobytes().decode() == "".join(reported).upper()

    ids = st.lists(st.tuples(st.integers(0, 44), st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1)))
    check_property(prop, st.binary(min_size=64, max_size=64), ids, examples=50 * effort)


def declared_property_spans(raw: bytes, start: int) -> list[list[int]]:
    """First place of each name, with the place of its last value."""
    found: dict[bytes, list[int]] = {}
    at = start
    for segment in decode_pairs(raw):
        if segment.is_pair:
            name, _, value = segment.raw.partition(b"\x01")
            first = found.get(name, [at])[0]
            found[name] = [first, len(name), at + len(name) + 1, len(value)]
        at += len(segment.raw) + 1
    return list(found.values())


def test_property_spans(both: Both, effort: int) -> None:
    def prop(strings: list[bytes], between: int, cut: bool) -> None:
        data, positions, expected, counts = b"", [], [], []
        for raw in strings:
            data += bytes(between)
            positions.append(len(data))
            spans = declared_property_spans(raw, len(data))
            expected += spans
            counts.append(len(spans))
            data += raw
        lengths = np.array([len(raw) for raw in strings], np.int64)
        data = data if cut else data + b"\x02\x01"
        for kernels in both:
            spans_out = np.full((sum(len(raw) // 4 + 1 for raw in strings), 4), -9, np.int64)
            counts_out = np.full(len(strings), -9, np.int64)
            places = np.array(positions, np.int64)
            empty_out = np.ones(len(strings), bool)
            total = kernels.property_spans(array(data), places, lengths, spans_out, counts_out, empty_out)
            assert empty_out.tolist() == [b"\x02\x02" in b"\x02" + raw for raw in strings]
            assert spans_out[:total].tolist() == expected
            assert counts_out.tolist() == counts

    strings = st.lists(PROPERTIES, max_size=4)
    check_property(prop, strings, st.integers(0, 3), st.booleans(), examples=150 * effort)


# ---- nothing outside of the buffer is read -------------------------------------------------------


def rows_of(kernels: ModuleType, data: bytes) -> np.ndarray:
    """Where a record has no such field stands anything."""
    rows, status = np.full((400, ROW_WIDTH), 1 << 60, np.int64), np.zeros(STATUS_WIDTH, np.int64)
    kernels.walk(array(data), 0, 0, len(data), 0, int(Check.ALL), rows, status)
    return rows[: status[Status.COUNT]]


def test_fields_of_records_in_columns(both: Both, effort: int) -> None:
    """Of records that are all alike, but for one, and of any."""

    def prop(data: bytes, times: int, more: bytes, compared: int, wanted: list[bool]) -> None:
        whole = data * times + more
        rows = rows_of(both[0], whole)
        fields = np.array([one if want else -1 for one, want in zip(TEXTS, wanted, strict=True)], np.int64)
        answers = []
        for kernels in both:
            ends = tuple(np.full(len(rows) + 1, -9, np.int32) for _ in TEXTS)
            sizes = [int(np.maximum(rows[:, one + 1], 0).sum()) for one in TEXTS]
            out = tuple(np.full(size, 0x3F, np.uint8) for size in sizes)
            alike = kernels.gather_fields(array(whole), 0, rows, compared, fields, ends, out)
            answers.append((alike, [one.tolist() for one in ends], [one.tobytes() for one in out]))
        assert answers[0] == answers[1]
        for field, copied in zip(fields.tolist(), answers[0][2], strict=True):
            spans = [(row[field], row[field + 1]) for row in rows.tolist()] if field >= 0 else []
            parts = [whole[at : at + length] for at, length in spans if length > 0]
            assert field < 0 or copied == b"".join(parts)

    wanted = st.lists(st.booleans(), min_size=len(TEXTS), max_size=len(TEXTS))
    given = logs(max_records=1), st.sampled_from([1, 3, 70]), logs(max_records=1) | logs(max_records=3)
    check_property(prop, *given, st.integers(0, int(Alike.ALL)), wanted, examples=100 * effort)


@pytest.mark.parametrize("v6", [False, True])
def test_what_records_have_in_common(both: Both, v6: bool) -> None:
    hosts = [bytes([number]) * (16 if v6 else 4) for number in (1, 2)]

    def common(*given: tuple[str, bytes, bytes]) -> int:
        data = b"".join(
            encode_message(topic, b"x", born_host=(born, 1), store_host=(stored, 1))
            for topic, born, stored in given
        )
        rows = rows_of(both[0], data)
        ends = tuple(np.zeros(0, np.int32) for _ in TEXTS)
        out = tuple(np.zeros(0, np.uint8) for _ in TEXTS)
        nothing = np.full(len(TEXTS), -1, np.int64)
        (one, other) = (
            kernels.gather_fields(array(data), 0, rows, int(Alike.ALL), nothing, ends, out)
            for kernels in both
        )
        assert one == other
        return int(one)

    a, b = hosts
    assert common(*[("T", a, b)] * 130) == Alike.ALL
    assert common(*[("T", a, b)] * 129, ("U", a, b)) == Alike.BORN_HOST | Alike.STORE_HOST
    assert common(*[("T", a, b)] * 70, ("TT", a, b)) == Alike.BORN_HOST | Alike.STORE_HOST
    assert common(("T", b, b), *[("T", a, b)] * 64) == Alike.TOPIC | Alike.STORE_HOST
    assert common(("T", a, a), *[("T", a, b)] * 65) == Alike.TOPIC | Alike.BORN_HOST
    other = a[:4] if v6 else a * 4
    assert common(("T", a, a), ("T", other, a)) == Alike.TOPIC | Alike.STORE_HOST
    assert common(("T", a, a), ("T", a, other)) == Alike.TOPIC | Alike.BORN_HOST


def test_numbers_of_rows_in_columns(both: Both, effort: int) -> None:
    def prop(values: list[int], count: int, wanted: list[int], few: int) -> None:
        rows = np.resize(np.array(values, np.int64), (count, ROW_WIDTH))
        fields, few = np.array(wanted, np.int64), min(few, len(wanted))
        answers = []
        for kernels in both:
            figures = np.full((len(Summary), len(SUMMARISED)), -9, np.int64)
            narrow, wide = np.zeros((few, count), np.int32), np.zeros((len(wanted) - few, count), np.int64)
            kernels.numbers(rows, np.array(SUMMARISED, np.int64), figures, fields, narrow, wide)
            answers.append((figures.tolist(), narrow.tolist(), wide.tolist()))
            assert [*narrow.tolist(), *wide.tolist()] == rows[:, fields].T.tolist()
        assert answers[0] == answers[1]
        assert answers[0][0][Summary.TOTAL] == np.maximum(rows, 0)[:, SUMMARISED].sum(axis=0).tolist()

    values = st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=99)
    fields = st.lists(st.sampled_from(list(Field)), max_size=6)
    counts = st.sampled_from([0, 1, 63, 64, 65, 200])
    check_property(prop, values, counts, fields, st.integers(0, 6), examples=50 * effort)


def test_texts_of_properties(both: Both) -> None:
    data = array(b"name\x01value\x02k\x01v")
    spans = np.array([[0, 4, 5, 5], [11, 1, 13, 1], [0, 0, 0, 0]], np.int64)
    for kernels in both:
        ends = np.zeros((2, 4), np.int32)
        names, values = np.zeros(5, np.uint8), np.zeros(6, np.uint8)
        assert kernels.property_texts(data, spans, ends[0], names, ends[1], values) == (5, 6)
        assert (bytes(names), bytes(values)) == (b"namek", b"valuev")
        assert ends.tolist() == [[0, 4, 5, 5], [0, 5, 6, 6]]


GUARDED = """
from importlib import import_module
from tests.scan.guarded import before_guard, guarded_inputs, run_all_kernels
kernels = import_module({module!r})
for data in guarded_inputs():
    with before_guard(data) as buffer:
        print(run_all_kernels(buffer, kernels))
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_nothing_behind_the_buffer_is_read() -> None:
    """In a process of its own: a single byte too far ends it."""
    assert len(guarded_answers(compiled_kernels())) == len(list(guarded_inputs()))


@pytest.mark.full
def test_all_compiled_kernels_answer_the_same() -> None:
    assert guarded_answers(ahead_kernels()) == guarded_answers(numba_kernels())


def guarded_answers(kernels: ModuleType) -> list[str]:
    """A checksum of all that these kernels answer and write for each buffer in front of a guard page."""
    done = python(GUARDED.format(module=kernels.__name__))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_kernel_that_is_called_is_compiled_ahead() -> None:
    for group in (KERNELS, COLUMNS):
        for room, names in group.items():
            assert names <= set(SIGNATURES[room]), room


def test_no_kernel_is_left_out() -> None:
    """Every compiled function is run on guarded buffers, or said to see none of its own."""
    found = set()
    for name in (one.name for one in pkgutil.iter_modules(import_module("rmqtool.scan.kernels").__path__)):
        module = import_module(f"rmqtool.scan.kernels.{name}")
        for kernel in vars(module).values():
            function = getattr(kernel, "py_func", None)
            public = function is not None and not function.__name__.startswith("_")
            if public and function.__module__ == module.__name__:
                found.add((name, function.__name__))
    listed = [(name, one) for group in (KERNELS, CALLED, COLUMNS) for name in group for one in group[name]]
    assert sorted(found) == sorted(listed)


def test_the_guard_bites() -> None:
    code = (
        "import ctypes\nfrom tests.scan.guarded import before_guard\n"
        "with before_guard(b'abc') as buffer:\n"
        "    print(ctypes.string_at(buffer.ctypes.data, 3), flush=True)\n"
        "    ctypes.string_at(buffer.ctypes.data, 4)\n"
    )
    done = python(code)
    assert (done.returncode, done.stdout) == (-11, "b'abc'\n")


def test_scans_agree_on_any_bytes(both: Both, effort: int) -> None:
    def prop(data: bytes, active: bool) -> None:
        twin, compiled = (scan(data, kernels, active=active) for kernels in both)
        assert compiled == twin
        assert len(messages(twin)) == len(messages(compiled))

    check_property(prop, SOUP, st.booleans(), examples=150 * effort)


def test_the_cache_is_named_after_all_that_is_compiled_in() -> None:
    """Every module of ours that a kernel's module takes something of."""
    from rmqtool.scan.cache import compiled_in

    covered = {path.resolve() for path in compiled_in()}
    kernels = [path for path in covered if path.parent.name == "kernels"]
    assert len(kernels) > 10
    for path in kernels:
        module = import_module(f"rmqtool.scan.kernels.{path.stem}")
        for name, value in vars(module).items():
            origin = sys.modules.get(getattr(value, "__module__", None) or "")
            of = value if isinstance(value, type(sys)) else origin
            file = getattr(of, "__file__", None)
            # not the decorator itself, nor what is imported for its effect: nothing of it is in machine code
            compiled = path.name != "compiler.py" and not name.startswith("_")
            if compiled and file and Path(file).is_relative_to(ROOT) and ".venv" not in file:
                assert Path(file).resolve() in covered, f"{path.name}: {name}"
    assert {ROOT / "formats/properties.py", ROOT / "formats/index.py"} <= covered
