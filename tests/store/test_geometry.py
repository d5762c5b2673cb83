from __future__ import annotations

import shutil

import pytest

import fixtures
from formats.commitlog import Blank
from rmqtool.store.config import StoreConfig, load_broker_conf
from rmqtool.store.geometry import Source
from rmqtool.store.layout import FileKind, Store

OPTIONS = {
    FileKind.COMMITLOG: "mapped_file_size_commit_log",
    FileKind.CONSUMEQUEUE: "consume_queue_file_size",
    FileKind.CONSUMEQUEUE_EXT: "mapped_file_size_consume_queue_ext",
    FileKind.BATCHCONSUMEQUEUE: "mapper_file_size_batch_consume_queue",
    FileKind.TIMERLOG: "mapped_file_size_timer_log",
    FileKind.COMPACTION_LOG: "compaction_log_file_size",
    FileKind.COMPACTION_CQ: "compaction_cq_file_size",
    FileKind.DLEDGER_DATA: "mapped_file_size_commit_log",
}


@pytest.mark.parametrize("name", fixtures.golden_names())
def test_inferred_sizes_are_the_settings_of_the_broker(golden, name):
    found = golden(name)
    for directory, root in found.stores.items():
        config = load_broker_conf(found.configs[directory])
        store = Store.open(root)
        for kind, size in store.sizes.items():
            if store.of_kind(kind) and kind in OPTIONS:
                assert (kind, size.value) == (kind, getattr(config, OPTIONS[kind]))
                assert (size.source, size.others) == (Source.INFERRED, ())
            elif kind in OPTIONS:
                assert size.source is Source.DEFAULT
        given = Store.open(root, config=config).sizes[FileKind.COMMITLOG]
        assert given.value == config.mapped_file_size_commit_log
        assert given.source is Source.GIVEN


def files(root, *entries):
    (root / "commitlog").mkdir(exist_ok=True)
    for path, size in entries:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"")
        with (root / path).open("r+b") as stream:
            stream.truncate(size)
    return Store.open(root)


def test_published_example(tmp_path):
    """Log files 0 ... 307200 of 102,400 bytes, a queue with 8 files 0 ... 7280 of 52 units."""
    log = [(f"commitlog/{base:020d}", 102400) for base in range(0, 307201, 102400)]
    topic = "b4b690a3-63b0-42b7-9c52-9e01a24a24d4"
    queue = [(f"consumequeue/{topic}/0/{base:020d}", 1040) for base in range(0, 7281, 1040)]
    sizes = files(tmp_path, *log, *queue).sizes
    assert sizes[FileKind.COMMITLOG].value == 102400
    assert sizes[FileKind.CONSUMEQUEUE].value == 1040
    assert sizes[FileKind.CONSUMEQUEUE].units == 52
    assert len(queue) == 8


def test_defaults_without_files(tmp_path):
    sizes = files(tmp_path).sizes
    assert (sizes[FileKind.COMMITLOG].value, sizes[FileKind.COMMITLOG].source) == (1 << 30, Source.DEFAULT)
    assert (sizes[FileKind.CONSUMEQUEUE].value, sizes[FileKind.CONSUMEQUEUE].units) == (6_000_000, 300_000)


def test_a_short_last_file_and_an_empty_one(tmp_path):
    store = files(
        tmp_path, (f"commitlog/{0:020d}", 1000), (f"commitlog/{1000:020d}", 17), (f"commitlog/{2000:020d}", 0)
    )
    size = store.sizes[FileKind.COMMITLOG]
    assert (size.value, size.source, size.others) == (1000, Source.INFERRED, (0, 17))


def test_a_short_first_file_is_outvoted_by_the_names(tmp_path):
    store = files(tmp_path, (f"commitlog/{0:020d}", 500), (f"commitlog/{1000:020d}", 1000))
    assert store.sizes[FileKind.COMMITLOG].value == 1000


def test_one_file_tells(tmp_path):
    store = files(tmp_path, (f"commitlog/{32768:020d}", 32768))
    assert (store.sizes[FileKind.COMMITLOG].value, store.sizes[FileKind.COMMITLOG].source) == (
        32768,
        Source.INFERRED,
    )


def test_a_tie_is_ambiguous_and_says_so(tmp_path):
    store = files(tmp_path, (f"commitlog/{0:020d}", 1000), ("commitlog/777", 500))
    size = store.sizes[FileKind.COMMITLOG]
    assert (size.value, size.source, size.candidates) == (1000, Source.AMBIGUOUS, (1000, 777, 500))


@pytest.mark.parametrize("blank", [False, True])
def test_a_segment_in_front_of_a_gap_tells_its_length_where_a_blank_ends_it(tmp_path, blank):
    bases = (0, 2000, 4000)
    store = files(tmp_path, *((f"commitlog/{base:020d}", 1000) for base in bases))
    for base in bases if blank else ():
        with (tmp_path / f"commitlog/{base:020d}").open("r+b") as stream:
            stream.seek(900)
            stream.write(Blank.build({"total_size": 100}))
    size = store.sizes[FileKind.COMMITLOG]
    assert (size.value, size.source) == (1000 if blank else 2000, Source.INFERRED)


def test_all_roots_of_a_log_tell_how_far_names_are_apart(tmp_path):
    other = tmp_path / "other"
    for root, bases in ((tmp_path / "commitlog", (0, 4000)), (other, (2000, 6000))):
        root.mkdir()
        for base in bases:
            (root / f"{base:020d}").write_bytes(bytes(1000))
    size = Store.open(tmp_path, commitlog_roots=[other]).sizes[FileKind.COMMITLOG]
    assert (size.value, size.source) == (2000, Source.INFERRED)


def test_mixed_sizes(tmp_path):
    entries = [(f"commitlog/{base:020d}", 65536) for base in range(0, 196608, 65536)]
    entries += [(f"commitlog/{196608:020d}", 32768)]
    size = files(tmp_path, *entries).sizes[FileKind.COMMITLOG]
    assert (size.value, size.others) == (65536, (32768,))
    assert "others 32768" in size.detail


def test_queue_size_given_is_rounded_up_to_units(tmp_path):
    store = files(tmp_path, (f"consumequeue/T/0/{0:020d}", 1020))
    given = Store.open(tmp_path, config=StoreConfig(mappedFileSizeConsumeQueue=1001)).sizes[
        FileKind.CONSUMEQUEUE
    ]
    assert (given.value, given.source, given.others) == (1020, Source.GIVEN, ())
    assert store.sizes[FileKind.CONSUMEQUEUE].value == 1020


def test_settings_that_were_not_given_do_not_count(tmp_path):
    files(tmp_path, (f"commitlog/{0:020d}", 32768))
    size = Store.open(tmp_path, config=StoreConfig(brokerName="a")).sizes[FileKind.COMMITLOG]
    assert (size.value, size.source) == (32768, Source.INFERRED)


def test_settings_that_disagree_with_the_files_say_so(golden):
    store = Store.open(golden("v533-basic").path, config=StoreConfig(mappedFileSizeCommitLog=1 << 20))
    size = store.sizes[FileKind.COMMITLOG]
    assert (size.value, size.source, size.others) == (1 << 20, Source.GIVEN, (32768,))


@pytest.mark.parametrize("name", [name for name in fixtures.golden_names() if "edge" not in name])
def test_index_geometry_of_real_stores(golden, name):
    found = golden(name)
    for directory, root in found.stores.items():
        config = load_broker_conf(found.configs[directory])
        store = Store.open(root)
        assert store.index_geometry.keys() == {file.path for file in store.index_files()}
        for geometry in store.index_geometry.values():
            assert (geometry.slots, geometry.items) == (config.max_hash_slot_num, config.max_index_num)
            assert geometry.source is Source.INFERRED
        for geometry in Store.open(root, config=config).index_geometry.values():
            assert geometry.source is Source.GIVEN


@pytest.mark.parametrize("name", ["v498-edge", "v533-edge"])
def test_an_index_file_without_entries_is_ambiguous(golden, name):
    found = golden(name)
    (geometry,) = Store.open(found.path).index_geometry.values()
    assert (geometry.slots, geometry.items, geometry.source) == (None, None, Source.AMBIGUOUS)
    assert geometry.candidates[0] == (100, 400)
    assert all(40 + 4 * slots + 20 * items == geometry.length for slots, items in geometry.candidates)
    with pytest.raises(ValueError, match="ambiguous"):
        geometry.item_position(1)
    config = load_broker_conf(found.config_path)
    (geometry,) = Store.open(found.path, config=config).index_geometry.values()
    assert (geometry.slots, geometry.items, geometry.source) == (100, 400, Source.GIVEN)


def test_an_empty_file_takes_the_geometry_of_a_sibling(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    (root / "index/20991231235959999").write_bytes(bytes(8440))
    geometry = Store.open(root).index_geometry["index/20991231235959999"]
    assert (geometry.slots, geometry.items, geometry.source) == (100, 400, Source.INFERRED)
    assert "same length" in geometry.detail
