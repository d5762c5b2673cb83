"""Logs torn to pieces: whatever is whole in some piece is in the new store, once, and all else is in step."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fixtures.builder import HandmadeLog
from formats.commitlog import Message
from rmqtool.repair.salvage import segments
from tests.repair.salvage.laws import check_store, is_placeholder, key_of, log_of, salvaged

SEGMENT = 4096
DEFAULT = 1 << 18
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.fixture(autouse=True, scope="module")
def small_default() -> Iterator[None]:
    """Where no size can be inferred, not a GiB for every example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "DEFAULT_SIZE", DEFAULT)
        yield


MESSAGE = st.tuples(
    st.sampled_from(["A", "TopicB", "a-longer-topic"]), st.integers(0, 2), st.integers(0, 900), st.booleans()
)


def make_log(messages: list[Any], first: int = 0) -> HandmadeLog:
    log = HandmadeLog(segment_size=SEGMENT, first_offset=first)
    for number, (topic, queue_id, length, keyed) in enumerate(messages):
        body = number.to_bytes(4, "big") * (length // 4)
        log.put(topic, body, {"KEYS": f"k{number}", "TAGS": "t"} if keyed else b"", queue_id=queue_id)
    return log


def image_of(log: HandmadeLog) -> bytes:
    """The log as one stretch of bytes, from its first offset on."""
    return b"".join(data for _, data in sorted(log.files().items()))


PIECES = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.integers(1, 6000), st.binary(max_size=9), st.integers(0, 3)),
    min_size=1,
    max_size=8,
)


def torn(log: HandmadeLog, cuts: list[Any]) -> tuple[list[bytes], set[int], set[int]]:
    """Files made of pieces of the log with noise between them; the offsets of records whole in one.

    And of those that may be, once more where a piece has them whole: no CRC covers properties, so the next
    bytes may stand in for their end.
    """
    image, base = image_of(log), log.first_offset
    files: dict[int, bytes] = {}
    maybe: set[int] = set()
    for anywhere, length, noise, number in cuts:
        start = anywhere % len(image)
        piece = image[start : start + length]
        files[number] = files.get(number, b"") + noise + piece
        end = base + start + len(piece)
        inside = [record for record in log.records if base + start <= record.physical_offset]
        maybe |= {
            record.physical_offset
            for record in inside
            if record.end - len(Message.parse(record.data).properties) <= end < record.end
        }
    # also one of which two pieces that meet have a part each
    whole = {one.physical_offset for one in log.records if any(one.data in data for data in files.values())}
    return list(files.values()), whole, maybe


def write_all(directory: Path, files: list[bytes]) -> list[Path]:
    paths = []
    for number, data in enumerate(files):
        paths.append(directory / f"#{number}.bin")
        paths[-1].write_bytes(data)
    return paths


def often(counted: Counter[Any], times: int) -> Counter[Any]:
    return Counter({key: count * times for key, count in counted.items()})


def expected(log: HandmadeLog, whole: set[int]) -> Counter[Any]:
    return Counter(key_of(Message.parse(r.data)) for r in log.records if r.physical_offset in whole)


@pytest.mark.parametrize("size", [None, SEGMENT])
@QUICK
@given(
    messages=st.lists(MESSAGE, min_size=1, max_size=40), cuts=PIECES, first=st.sampled_from([0, 3 * SEGMENT])
)
@example(  # the first piece ends two bytes early, and takes the next one's first two for its end
    messages=[
        ("a-longer-topic", 0, 123, False),
        ("A", 0, 501, False),
        ("A", 0, 0, True),
        ("A", 0, 66, True),
        ("A", 0, 12, False),
        ("a-longer-topic", 0, 123, False),
        ("A", 0, 0, True),
    ],
    cuts=[(568, 961, b"", 0), (0, 1895, b"", 0)],
    first=0,
)
@example(  # the record that was cut claims the place of the same one further on, which is whole
    messages=[
        ("A", 0, 0, True),
        ("A", 0, 12, False),
        ("A", 0, 64, True),
        ("A", 0, 432, False),
        ("A", 0, 0, False),
        ("A", 0, 0, False),
        ("A", 0, 0, True),
    ],
    cuts=[(0, 1190, b"", 0), (448, 757, b"", 0)],
    first=0,
)
def test_every_whole_record_comes_back(
    size: int | None, messages: list[Any], cuts: list[Any], first: int
) -> None:
    log = make_log(messages, first)
    files, whole, maybe = torn(log, cuts)
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "out"
        reported = salvaged(write_all(Path(place), files), output, segment_size=size)
        if not (whole or maybe):
            assert not reported.records
            assert not output.exists()
            return
        if not reported.records:
            assert not whole
            return
        records = check_store(output, expected(log, whole), often(expected(log, maybe), len(cuts)))
        if size:  # with the right size of segments everything has room where it was
            places = {record.physical_offset for record in records if not is_placeholder(record)}
            moved = int(reported.by_source("moved").sum())
            # where a piece has a record whole and another one with a wrong end, one of the two has to move
            assert moved == 0 or whole & maybe
            assert whole <= places
            assert len(places - whole - maybe) <= moved


@QUICK
@given(
    mine=st.lists(MESSAGE, min_size=1, max_size=25),
    other=st.lists(MESSAGE, min_size=1, max_size=25),
    cuts=PIECES,
    more=PIECES,
)
def test_two_logs_that_claim_the_same_offsets(
    mine: list[Any], other: list[Any], cuts: list[Any], more: list[Any]
) -> None:
    one, two = make_log(mine), make_log([(topic, queue, size + 4, k) for topic, queue, size, k in other])
    files, whole, maybe = torn(one, cuts)
    files_two, whole_two, maybe_two = torn(two, more)
    both = expected(one, whole) | expected(two, whole_two)  # equal messages are copies of each other
    perhaps = often(expected(one, maybe) + expected(two, maybe_two), len(cuts) + len(more))
    if not both:
        return
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "out"
        reported = salvaged(write_all(Path(place), [*files, *files_two]), output, segment_size=SEGMENT)
        real = [record for record in log_of(output) if not is_placeholder(record)]
        assert set(both) <= {key_of(record) for record in real} <= set(both | perhaps)
        assert reported.by_source("unplaced").sum() == 0
        assert reported.records == len(real) + reported.by_source("duplicates").sum()


def test_records_of_one_shape_are_no_copies_of_each_other(tmp_path: Path) -> None:
    images = []
    for text in (b"mine", b"yours"):
        log = HandmadeLog(segment_size=SEGMENT)
        for number in range(5):
            log.put("A", text[:4] + bytes([number]))
        images.append(image_of(log))
    reported = salvaged(write_all(tmp_path, [*images, images[0]]), tmp_path / "out", segment_size=SEGMENT)
    bodies = sorted(one.body for one in log_of(tmp_path / "out") if not is_placeholder(one))
    assert bodies == sorted(text + bytes([number]) for text in (b"mine", b"your") for number in range(5))
    assert reported.by_source("duplicates").sum() == 5
