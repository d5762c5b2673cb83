"""Whose log a record is from: a damaged store host is no broker, and a small broker is one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fixtures.builder import HandmadeLog
from formats.commitlog import SysFlag
from rmqtool.scan import fields as f
from tests.repair.salvage.laws import is_placeholder, log_of, salvaged

SEGMENT = 1 << 16
NEIGHBOUR = bytes([10, 0, 0, 3]), 10911
"""another broker, whose address differs in one bit"""


def image_of(log: HandmadeLog) -> bytearray:
    return bytearray(b"".join(data for _, data in sorted(log.files().items())))


def make_log(count: int, seed: int, **fields: object) -> HandmadeLog:
    log, chance = HandmadeLog(segment_size=SEGMENT), random.Random(seed)
    for number in range(count):
        log.put("A", chance.randbytes(chance.randrange(40, 90)), queue_id=number % 3, **fields)
    return log


def flip(image: bytearray, position: int, bit: int) -> None:
    image[position + bit // 8] ^= 1 << bit % 8


def test_flipped_bits_make_no_brokers(tmp_path: Path) -> None:
    log = make_log(2000, 1)
    image, chance = image_of(log), random.Random(2)
    struck = chance.sample(log.records[1:-1], 90)
    for one in struck:
        flip(image, one.physical_offset + f.OFF_STORE_HOST, chance.randrange(64))
    for one in struck[:9]:  # these lie nowhere that they state
        flip(image, one.physical_offset + f.OFF_PHYSICAL_OFFSET, 25 + chance.randrange(30))
    (tmp_path / "image").write_bytes(image)
    reported = salvaged([tmp_path / "image"], tmp_path / "out", segment_size=SEGMENT)
    assert [one.hosts for one in reported.outcomes] == [["10.0.0.2:10911"]]
    assert reported.attributed.sum() == reported.outcomes[0].other_hosts == 90
    assert reported.by_source("moved").sum() == 9
    assert sum(not is_placeholder(one) for one in log_of(tmp_path / "out")) == 2000


def test_neighbours_with_damage_of_their_own_and_the_last_one(tmp_path: Path) -> None:
    log = make_log(40, 3)
    image = image_of(log)
    for number, bit in ((10, 3), (11, 9), (12, 31), (20, 7), (39, 50)):
        flip(image, log.records[number].physical_offset + f.OFF_STORE_HOST, bit)
    for number in (19, 21):
        flip(image, log.records[number].end - 12, 0)  # its body fails its CRC
    (tmp_path / "image").write_bytes(image)
    reported = salvaged([tmp_path / "image"], tmp_path / "out", segment_size=SEGMENT, stores="by-host")
    assert [(one.name, one.other_hosts) for one in reported.outcomes] == [("", 5)]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("apart", [True, False])
def test_a_second_broker_has_a_store_of_its_own(count: int, apart: bool, tmp_path: Path) -> None:
    """However few records are left of it, and however near its address is; also in the same image."""
    mine, other = make_log(300, 4), make_log(count, 5, store_host=NEIGHBOUR)
    image, theirs = image_of(mine), image_of(other)[: other.end_offset]
    struck = mine.records[100:200:7]
    for one in struck:
        flip(image, one.physical_offset + f.OFF_STORE_HOST, 24)  # 10.0.0.3
    parts = [image, theirs] if apart else [image + theirs + bytes(100) + make_tail(mine)]
    for number, part in enumerate(parts):
        (tmp_path / f"#{number}").write_bytes(part)
    reported = salvaged(sorted(tmp_path.glob("#*")), tmp_path / "out", segment_size=SEGMENT)
    assert [(one.name, one.written.messages, one.other_hosts) for one in reported.outcomes] == [
        ("10.0.0.2_10911", 300, len(struck)),
        ("10.0.0.3_10911", count, 0),
    ]
    for one in reported.outcomes:
        assert one.written.moved == 0


def make_tail(log: HandmadeLog) -> bytes:
    """The first records of a log once more."""
    return bytes(image_of(log)[: log.records[20].physical_offset])


def test_a_broker_that_got_another_address_goes_on_in_its_log(tmp_path: Path) -> None:
    log = make_log(50, 6)
    for number in range(50):
        log.put("A", bytes(30 + number), store_host=(bytes([192, 168, 7, 9]), 10911))
    (tmp_path / "image").write_bytes(image_of(log))
    reported = salvaged([tmp_path / "image"], tmp_path / "out", segment_size=SEGMENT)
    assert [sorted(one.hosts) for one in reported.outcomes] == [["10.0.0.2:10911", "192.168.7.9:10911"]]
    assert not reported.attributed.any()


def test_a_store_host_of_another_width(tmp_path: Path) -> None:
    """One record in the middle that is of IPv6: where it lies says whose it is."""
    log = make_log(30, 7)
    wide = bytes(15) + b"\1", 10911
    log.put("A", b"x" * 50, sys_flag=int(SysFlag.STOREHOST_V6), store_host=wide)
    for number in range(30):
        log.put("A", bytes(30 + number))
    (tmp_path / "image").write_bytes(image_of(log))
    reported = salvaged([tmp_path / "image"], tmp_path / "out", segment_size=SEGMENT)
    assert [(one.hosts, one.other_hosts) for one in reported.outcomes] == [(["10.0.0.2:10911"], 1)]
    assert len(log_of(tmp_path / "out")) == 61


def test_any_number_of_hosts_makes_so_many_stores(tmp_path: Path) -> None:
    """Each has messages of its own at the same offsets; those of all are there."""
    bodies = []
    for number in range(80):
        log, host = HandmadeLog(segment_size=SEGMENT), (bytes([10, 1, 0, number]), 10911)
        for one in range(1 + (number == 79)):
            bodies.append(f"message {one} of {number}".encode())
            log.put("A", bodies[-1], store_host=host)
        (tmp_path / f"#{number}").write_bytes(image_of(log)[: log.end_offset])
    reported = salvaged(sorted(tmp_path.glob("#*")), tmp_path / "out", segment_size=SEGMENT)
    assert len(reported.outcomes) == len(list((tmp_path / "out").iterdir())) - 1 == 64
    assert reported.outcomes[-1].name == "remaining-hosts"
    assert len(reported.outcomes[-1].hosts) == 80 - 63
    assert "10.1.0.79_10911" in {one.name for one in reported.outcomes}
    found = [one.body for root in reported.outcomes for one in log_of(tmp_path / "out" / root.name)]
    assert sorted(body for body in found if body in bodies) == sorted(bodies)
