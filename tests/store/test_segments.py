from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.commitlog import encode_message
from rmqtool.errors import UsageError
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store
from rmqtool.store.segments import Segment, SegmentSet


def make(root, *segments):
    """Files as (directory, name, size, first bytes); returns the segments of the store."""
    for directory, name, size, head in segments:
        path = root / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(head[:size].ljust(size, b"\0"))
    (root / "commitlog").mkdir(exist_ok=True)
    others = sorted({directory for directory, *_ in segments} - {"commitlog"})
    return Store.open(root, commitlog_roots=[root / other for other in others]).segments


def name(base):
    return f"{base:020d}"


X = b"\x00\x00\x00\x64\xda\xa3\x20\xa7"


def test_a_plain_log(tmp_path):
    log = make(tmp_path, *(("commitlog", name(base), 1000, X) for base in (0, 1000, 2000)))
    assert len(log) == 3
    assert (log.first_offset, log.end_offset) == (0, 3000)
    assert [log.address(offset) for offset in (0, 999, 1000, 2999)] == [
        (0, 0),
        (0, 999),
        (1000, 0),
        (2000, 999),
    ]
    assert log.locate(3000) is None
    assert log.locate(-1) is None
    assert not log.holes()
    assert not log.twins()
    assert not log.overlaps()


def test_no_segments(tmp_path):
    log = make(tmp_path)
    assert len(log) == 0
    assert (log.first_offset, log.end_offset) == (-1, 0)
    assert log.locate(0) is None
    assert log.last_with_data() is None
    with pytest.raises(UsageError, match="no segment 0"):
        log.physical_offset(0, 0)


def test_unpadded_and_foreign_digits_are_sorted_as_numbers(tmp_path):
    log = make(
        tmp_path,
        ("commitlog", "10000", 500, X),
        ("commitlog", "٩٥٠٠", 500, X),
        ("commitlog", name(0), 9500, X),
    )
    assert [one.base for one in log] == [0, 9500, 10000]
    assert log.address(9999) == (9500, 499)


def test_a_missing_and_a_short_file_are_holes(tmp_path):
    log = make(
        tmp_path,
        ("commitlog", name(0), 1000, X),
        ("commitlog", name(2000), 300, X),
        ("commitlog", name(3000), 1000, X),
    )
    assert [(hole.start, hole.end) for hole in log.holes()] == [(1000, 2000), (2300, 3000)]
    assert [(hole.before.base, hole.after.base) for hole in log.holes()] == [(0, 2000), (2000, 3000)]
    assert log.locate(1500) is None
    assert log.locate(2299)[1] == 299
    assert log.locate(2300) is None


def test_mixed_sizes_and_overlap(tmp_path):
    """A long file that reaches behind a short one which lies inside of it."""
    log = make(
        tmp_path,
        ("commitlog", name(0), 4000, X),
        ("commitlog", name(1000), 500, X),
        ("commitlog", name(4000), 100, X),
    )
    assert log.address(1200) == (1000, 200)
    assert log.address(1600) == (0, 1600)
    assert log.address(4050) == (4000, 50)
    assert [(a.base, b.base) for a, b in log.overlaps()] == [(0, 1000)]
    assert [one.base for one in log.locate_all(1200)] == [1000, 0]
    assert not log.holes()


def test_several_roots(tmp_path):
    log = make(
        tmp_path,
        ("commitlog", name(0), 1000, X),
        ("disk2", name(1000), 1000, X),
        ("commitlog", name(2000), 1000, X),
    )
    assert [(one.base, one.file.root, one.file.path) for one in log] == [
        (0, 0, f"commitlog/{name(0)}"),
        (1000, 1, f"disk2/{name(1000)}"),
        (2000, 0, f"commitlog/{name(2000)}"),
    ]
    assert not log.holes()


def test_twins_prefer_data_then_length_then_the_first_root(tmp_path):
    log = make(
        tmp_path, ("commitlog", name(0), 1000, b""), ("disk2", name(0), 1000, X), ("disk3", name(0), 900, X)
    )
    (group,) = log.twins()
    assert [one.file.root for one in group] == [0, 1, 2]
    assert log.locate(10)[0].file.root == 1
    assert log.by_base(0).file.root == 1
    assert log.locate(950)[0].file.root == 1


def test_address_form(tmp_path):
    log = make(tmp_path, ("commitlog", name(0), 1000, X), ("commitlog", name(1000), 1000, X))
    assert log.physical_offset(1000, 17) == 1017
    assert log.physical_offset(1000, 1000) == 2000
    for base, position in ((500, 0), (0, 1001), (0, -1)):
        with pytest.raises(UsageError):
            log.physical_offset(base, position)


def test_the_last_segment_with_data(tmp_path):
    log = make(
        tmp_path,
        ("commitlog", name(0), 1000, X),
        ("commitlog", name(1000), 1000, X),
        ("commitlog", name(2000), 1000, b""),
        ("commitlog", name(3000), 0, b""),
    )
    assert log.last_with_data().base == 1000
    assert [log.is_active(one) for one in log] == [False, True, True, True]


def test_a_log_of_zeros_has_no_data(tmp_path):
    log = make(tmp_path, ("commitlog", name(0), 1000, b""), ("commitlog", name(1000), 1000, b""))
    assert log.last_with_data() is None
    assert all(log.is_active(one) for one in log)


def test_only_the_first_bytes_are_looked_at(tmp_path):
    log = make(
        tmp_path, ("commitlog", name(0), 1000, X), ("commitlog", name(1000), 1000, bytes(8) + b"later")
    )
    assert log.last_with_data().base == 0


def test_an_unreadable_segment_counts_as_data(tmp_path, monkeypatch):
    log = make(tmp_path, ("commitlog", name(0), 1000, X), ("commitlog", name(1000), 1000, b""))
    (tmp_path / "commitlog" / name(1000)).unlink()
    assert log.last_with_data().base == 1000


def test_a_copied_segment_tells_its_base(tmp_path):
    path = tmp_path / "evidence.bin"
    path.write_bytes(encode_message("T", b"body", physical_offset=98304))
    (one,) = Store.open(path).segments
    assert (one.base, one.base_from) == (98304, "record")
    path.write_bytes(bytes(4) + X)
    (one,) = Store.open(path, as_kind="commitlog").segments
    assert (one.base, one.base_from) == (0, "none")


def test_sorting_of_an_arbitrary_iterable(tmp_path):
    log = make(tmp_path, ("commitlog", name(0), 10, X), ("commitlog", name(10), 10, X))
    again = SegmentSet(reversed(list(log)))
    assert [one.base for one in again] == [0, 10]
    assert again[1].end == 20
    assert "SegmentSet" in repr(again)


@pytest.mark.parametrize("release", ["v498-unclean", "v533-unclean"])
def test_look_ahead_segment_of_a_real_store(golden, release):
    log = Store.open(golden(release).path).segments
    assert log.last_with_data() == log[-2]
    assert log.is_active(log[-1])


def test_records_of_real_stores_are_found(golden):
    for name_ in ("v498-edge", "v533-expired-head", "v498-expired-all"):
        found = golden(name_)
        log = Store.open(found.path).segments
        for record in found.expected["records"]:
            segment, position = log.locate(record["physicalOffset"])
            with segment.open() as source:
                head = source.window(position, 36).tobytes()
            assert int.from_bytes(head[:4], "big") == record["storeSize"]
            assert int.from_bytes(head[28:36], "big") == record["physicalOffset"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=12))
def test_every_segment_with_an_offset_is_found(files):
    log = SegmentSet(
        Segment(StoreFile(f"commitlog/{number}", "", FileKind.COMMITLOG, size, 0, 0), base, size)
        for number, (base, size) in enumerate(files)
    )
    for offset in range(55):
        wanted = [one for one in log if one.covers(offset)]
        assert log.locate_all(offset) == wanted[::-1]
