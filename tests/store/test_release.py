from __future__ import annotations

import os
import shutil

import pytest

import fixtures
from rmqtool.store.layout import Store
from rmqtool.store.release import combine
from rmqtool.store.releases import (
    ALL,
    FIRST_5,
    LAST_4,
    RELEASES,
    Evidence,
    Weight,
    between,
    describe,
    since,
    until,
    version_key,
)

WIDEST = {"4.7": "4.0.0-4.7.0", "4.9.0": "4.7.1-4.9.0", "4.9": "4.9.1-4.9.8", "5.3": "5.2.0-5.3.3"}


@pytest.mark.parametrize("name", fixtures.golden_names())
def test_the_true_release_is_in_the_range(golden, name):
    found = golden(name)
    for root in found.stores.values():
        release = Store.open(root).release
        assert found.release in release.releases, [str(one) for one in release.evidence]
        assert not release.mixed
        assert all(one.agrees for one in release.evidence)
        widest = next(text for start, text in WIDEST.items() if found.release.startswith(start))
        low, high = widest.split("-")
        assert release.releases <= between(low, high)
        assert release.first in release.releases
        assert release.last in release.releases


@pytest.mark.parametrize("base", sorted(fixtures.damage_bases()))
def test_bases_of_the_damage_corpus(tmp_path, base):
    root = fixtures.copy_base(base, tmp_path / "store")
    expected = "4.9.1-4.9.8" if base.startswith("v498") else "5.2.0-5.3.3"
    assert Store.open(root).release.guess == expected


def copy(golden, tmp_path, name):
    root = tmp_path / "store"
    shutil.copytree(golden(name).path, root)
    return root


def facts(release):
    return {one.fact: one for one in release.evidence}


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("v533-v2", "magic V2 (newest records)"),
        ("v533-props-crc", "__CRC32# trailers (newest records)"),
        ("v533-batchcq", "inner batches (newest records)"),
        ("v533-ipv6", "IPv6 hosts (newest records)"),
        ("v498-lmq", "multi dispatch (newest records)"),
        ("v498-compressed", "compression type bits (newest records)"),
        ("b533-full", "properties in the order of HashMap(128) (newest records)"),
        ("b497-full", "properties in the order of HashMap(16) (newest records)"),
        ("b497-full", "properties end without a separator (newest records)"),
        ("b533-full", "properties end with a separator (newest records)"),
        ("b533-unclean", "holds a process id"),
        ("b497-unclean", "is empty"),
        ("b533-full", "topics have attributes"),
        ("b533-full", "groups have attributes"),
        ("b533-full", "dataVersion has a stateVersion"),
        ("b497-full", "dataVersion has no stateVersion"),
        ("b497-full", "has no dataVersion"),
        ("b497-full", "no abort.bak, which 5.x leaves behind at every start"),
        ("b533-full", "abort_bak exists"),
        ("b533-rocksdb-v2", "is a RocksDB database"),
        ("v470-basic", "hashSlotCount counts entries that share a slot"),
        ("v490-basic", "hashSlotCount is less than the number of entries"),
        ("v533-edge", "an index file without entries has the indexCount 1"),
        ("b533-timer", "topic rmq_sys_wheel_timer exists"),
    ],
)
def test_evidence(golden, name, fact):
    found = facts(Store.open(golden(name).path).release)
    assert fact in found
    assert golden(name).release in found[fact].releases


def test_rocksdb_settings_tell_5_3_2(golden):
    assert Store.open(golden("b533-rocksdb-v2").path).release.guess == "5.3.2-5.3.3"


def test_a_confirm_offset_is_of_5_but_may_be_damage(golden, tmp_path):
    root = copy(golden, tmp_path, "v498-basic")
    raw = bytearray((root / "checkpoint").read_bytes())
    raw[39] = 1
    (root / "checkpoint").write_bytes(raw)
    release = Store.open(root).release
    found = facts(release)["has masterFlushedOffset or confirmPhyOffset"]
    assert (found.releases, found.agrees) == (since(FIRST_5), False)
    assert release.guess == "4.9.1-4.9.8"
    assert not release.mixed


def test_an_upgraded_store_is_mixed_and_the_newest_writer_wins(golden, tmp_path):
    """Segments of 4.9.8 in front of those of 5.3.3, as an upgrade leaves them."""
    root = copy(golden, tmp_path, "v533-basic")
    old = golden("v498-basic").path / "commitlog"
    for base in ("00000000000000000000", "00000000000000032768"):
        shutil.copyfile(old / base, root / "commitlog" / base)
    release = Store.open(root).release
    assert release.mixed
    assert "5.3.3" in release.releases
    assert "4.9.8" not in release.releases
    (contra,) = [one for one in release.evidence if not one.agrees]
    assert contra.fact == "properties end without a separator (oldest records)"
    assert "4.9.8" in contra.releases


def test_settings_left_by_the_old_release(golden, tmp_path):
    """The first start of 5.x on an old store that was killed before it wrote its own settings."""
    root = copy(golden, tmp_path, "b497-full")
    (root / "abort").write_text("4711")
    (root / "abort.bak").touch()
    release = Store.open(root).release
    assert release.releases <= since(FIRST_5)
    assert release.mixed
    assert {one.path for one in release.evidence if not one.agrees} >= {"config/topics.json"}


def test_an_abort_file_made_by_hand_does_not_make_it_a_4(golden, tmp_path):
    root = copy(golden, tmp_path, "v533-basic")
    (root / "abort").touch()
    assert Store.open(root).release.guess == "5.2.0-5.3.3"


def test_a_commitlog_directory_alone(golden):
    release = Store.open(golden("v533-basic").path / "commitlog").release
    assert release.releases == until("4.9.0") | since("5.2.0")
    assert release.guess == "4.0.0-4.9.0, 5.2.0-5.3.3"


def test_nothing_to_go_by(tmp_path):
    (tmp_path / "commitlog").mkdir()
    release = Store.open(tmp_path).release
    assert (release.guess, release.known, release.mixed, release.evidence) == ("unknown", False, False, ())


def test_records_behind_the_first_pages_of_a_large_segment(tmp_path):
    """The end of the data is found by bisection, not by reading the zeros behind it."""
    from formats.commitlog import encode_message

    log = tmp_path / "commitlog"
    log.mkdir()
    old = encode_message("T", b"x" * 100, b"UNIQ_KEY\x01a") * 3000
    new = encode_message("T" * 200, b"x" * 100, b"UNIQ_KEY\x01a\x02") * 2000
    with (log / "00000000000000000000").open("wb") as stream:
        stream.write(old + new)
        stream.truncate(1 << 30)
    release = Store.open(tmp_path).release
    assert facts(release)["magic V2 (newest records)"].agrees
    assert release.mixed
    assert release.guess == "5.2.0-5.3.3"


def test_release_sets():
    assert since("5.3.2") == {"5.3.2", "5.3.3"}
    assert until("4.0.0") == {"4.0.0"}
    assert since("4.0.0") == ALL
    assert until(LAST_4) | since(FIRST_5) == ALL
    assert until(LAST_4).isdisjoint(since(FIRST_5))
    assert describe(frozenset({"4.9.0", "5.3.2", "5.3.3"})) == "4.9.0, 5.3.2-5.3.3"
    assert describe(ALL) == "unknown"
    assert list(RELEASES) == sorted(RELEASES, key=version_key)
    with pytest.raises(ValueError, match="invalid literal"):
        version_key("5.x")


def evidence(fact, releases, weight=Weight.LIKELY, mtime=0):
    return Evidence(fact, "f", releases, weight, mtime * 10**9)


def test_certain_beats_likely():
    release = combine([evidence("a", until(LAST_4)), evidence("b", since(FIRST_5), Weight.CERTAIN)])
    assert release.releases == since(FIRST_5)
    assert [(one.fact, one.agrees) for one in release.evidence] == [("b", True), ("a", False)]


def test_the_newest_file_beats_an_older_one():
    for old, new in ((until(LAST_4), since(FIRST_5)), (since(FIRST_5), until(LAST_4))):
        release = combine([evidence("old", old, mtime=1000), evidence("new", new, mtime=9000)])
        assert release.releases == new
        assert release.mixed


def test_hints_never_exclude():
    release = combine([evidence("a", until(LAST_4), Weight.HINT)])
    assert release.releases == ALL
    assert not release.mixed


def test_the_order_of_the_evidence_does_not_matter():
    found = [
        evidence("a", between("4.9.1", "5.1.4")),
        evidence("b", since(FIRST_5), Weight.CERTAIN),
        evidence("c", between("5.1.0", "5.3.3"), mtime=5),
        evidence("d", until(LAST_4), mtime=9),
    ]
    answers = {combine(order).guess for order in (found, found[::-1], found[2:] + found[:2])}
    assert answers == {"5.1.0-5.1.4"}


def test_modification_times_do_not_tell_in_a_copied_store(golden, tmp_path):
    root = copy(golden, tmp_path, "b533-full")
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    assert Store.open(root).release.guess == "5.2.0-5.3.3"
