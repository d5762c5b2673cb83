from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter

import pytest

import fixtures
from rmqtool.errors import NotAStoreError, UsageError
from rmqtool.store.config import StoreConfig, load_broker_conf
from rmqtool.store.layout import FileKind, Store, StoreForm
from tests.helpers import ROOT, rmq

SEGMENT = "00000000000000000000"


@pytest.mark.parametrize("name", fixtures.golden_names())
def test_every_file_of_a_real_store_has_a_kind(golden, name, store_unchanged):
    found = golden(name)
    for root in found.stores.values():
        store = Store.open(store_unchanged(root))
        assert store.form is StoreForm.STORE
        assert [file.path for file in store.files if file.kind is FileKind.UNKNOWN] == []
        on_disk = sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())
        assert sorted(file.path for file in store.files) == on_disk
        directories = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir())
        assert sorted(one.path for one in store.directories if one.path) == directories
        for file in store.files:
            info = os.stat(file.absolute)
            assert (file.size, file.mtime_ns, file.disk_bytes) == (
                info.st_size,
                info.st_mtime_ns,
                info.st_blocks * 512,
            )
        assert store.notes == ()


@pytest.mark.parametrize("name", [name for name in fixtures.golden_names() if name.startswith("v")])
def test_queues_are_those_that_java_reports(golden, name):
    """`cqUnits` lists every queue that the real store loaded; those of RocksDB have no files."""
    found = golden(name)
    store = Store.open(found.path)
    expected = {(row["topic"], row["queue"]) for row in found.expected["cqUnits"] if row["units"]}
    if "rocksdb" in name:
        assert store.queues() == ()
        return
    queues = {
        (one.topic, one.queue_id)
        for kind in ("consumequeue", "batchconsumequeue")
        for one in store.queues(kind)
    }
    assert expected <= queues
    for kind in ("consumequeue", "batchconsumequeue", "consumequeue_ext"):
        for queue in store.queues(kind):
            assert [file.base_offset for file in queue.files] == sorted(
                file.base_offset for file in queue.files
            )
            assert all(
                file.path == f"{kind}/{queue.topic}/{queue.queue_id}/{file.name}" for file in queue.files
            )


def kinds(store):
    return Counter(str(file.kind) for file in store.files)


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        ("b533-rocksdb", "rocksdb", 39),
        ("b533-rocksdb-double", "rocksdb", 9),
        ("b533-rocksdb-v2", "rocksdb", 7),
        ("b533-pop-kv", "rocksdb", 8),
        ("b533-compaction", "compaction_log", 3),
        ("b533-compaction", "compaction_cq", 3),
        ("b533-controller", "epoch", 1),
        ("b533-controller", "broker_identity", 1),
        ("b533-dledger", "dledger_data", 2),
        ("b533-dledger", "dledger_index", 1),
        ("b533-dledger", "dledger_text", 3),
        ("b533-timer", "timerlog", 6),
        ("b533-timer", "timerwheel", 1),
        ("b533-timer", "timercheck", 1),
        ("b533-timer", "timermetrics", 1),
        ("v498-cqext", "consumequeue_ext", 6),
        ("v533-batchcq", "batchconsumequeue", 5),
        ("b533-unclean", "abort", 1),
        ("b533-unclean", "abort_bak", 1),
        ("b533-full", "config_bak", 8),
        ("b533-full", "compaction_position", 1),
    ],
)
def test_kinds(golden, name, kind, count):
    store = Store.open(golden(name).path)
    assert kinds(store)[kind] == count
    assert len(store.of_kind(kind)) == count


def test_topics_are_directory_names_verbatim(golden):
    topics = {queue.topic for queue in Store.open(golden("b533-full").path).queues()}
    assert {"%RETRY%CG_retry", "%DLQ%CG_retry", "inst1%TopicNs"} <= topics


@pytest.mark.parametrize(
    ("golden_name", "place", "form", "kind"),
    [
        ("v533-basic", "commitlog", StoreForm.COMMITLOG, "commitlog"),
        ("v533-basic", "consumequeue", StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "consumequeue/TopicA", StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "consumequeue/TopicA/0", StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "index", StoreForm.FOLDER, "index"),
        ("b533-full", "config", StoreForm.FOLDER, "config"),
        ("b533-full", "compaction", StoreForm.FOLDER, "compaction_position"),
        ("b533-compaction", "compaction/compactionLog/TopicCompact/0", StoreForm.FOLDER, "compaction_log"),
        ("b533-dledger", "dledger-n0", StoreForm.DLEDGER, "dledger_data"),
        ("b533-dledger", "dledger-n0/data", StoreForm.DLEDGER, "dledger_data"),
        ("b533-timer", "timerlog", StoreForm.FOLDER, "timerlog"),
        ("b533-rocksdb", "config/topics", StoreForm.FOLDER, "rocksdb"),
        ("b533-rocksdb", "consumequeue", StoreForm.FOLDER, "rocksdb"),
        ("b533-pop-kv", "kvStore", StoreForm.FOLDER, "rocksdb"),
        ("v533-batchcq", "batchconsumequeue", StoreForm.FOLDER, "batchconsumequeue"),
        ("v498-cqext", "consumequeue_ext", StoreForm.FOLDER, "consumequeue_ext"),
    ],
)
def test_a_folder_inside_a_store(golden, golden_name, place, form, kind):
    root = golden(golden_name).path
    store = Store.open(root / place)
    assert (store.form, store.scope, store.root) == (form, place, root)
    assert kinds(store)[kind]
    inside = [file for file in Store.open(root).files if file.path.startswith(place + "/")]
    assert list(store.files) == inside


@pytest.mark.parametrize(
    ("golden_name", "place", "depth", "form", "kind"),
    [
        ("v533-basic", "commitlog", 1, StoreForm.COMMITLOG, "commitlog"),
        ("v533-basic", "consumequeue/TopicA/2", 1, StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "consumequeue/TopicA", 2, StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "consumequeue", 3, StoreForm.FOLDER, "consumequeue"),
        ("v533-basic", "index", 1, StoreForm.FOLDER, "index"),
        ("b533-dledger", "dledger-n0", 2, StoreForm.DLEDGER, "dledger_data"),
        ("b533-dledger", "dledger-n0/data", 1, StoreForm.DLEDGER, "dledger_data"),
        ("b533-full", "config", 1, StoreForm.FOLDER, "config"),
        ("b533-timer", "timerlog", 1, StoreForm.FOLDER, "timerlog"),
        ("v533-batchcq", "batchconsumequeue/TopicBatch/0", 1, StoreForm.FOLDER, "batchconsumequeue"),
        ("v498-cqext", "consumequeue_ext/TopicA/0", 1, StoreForm.FOLDER, "consumequeue_ext"),
        ("b533-pop-kv", "kvStore", 1, StoreForm.FOLDER, "rocksdb"),
    ],
)
def test_a_folder_copied_away_from_its_store(golden, tmp_path, golden_name, place, depth, form, kind):
    source = golden(golden_name).path / place
    if not source.exists():
        source = next((golden(golden_name).path / place.split("/", 1)[0]).glob("*/0"))
    copy = tmp_path / "evidence"
    shutil.copytree(source, copy)
    store = Store.open(copy)
    assert store.form is form
    assert store.root == copy
    assert kinds(store)[kind]
    assert len(store.files) == len([path for path in copy.rglob("*") if path.is_file()])
    if kind == "consumequeue":
        queues = store.queues()
        assert len(queues) == {1: 1, 2: 4, 3: 10}[depth]
        assert {queue.topic for queue in queues} <= {
            None,
            "evidence",
            "TopicA",
            "TopicB",
            "T",
            "SCHEDULE_TOPIC_XXXX",
        }
        assert [(None in (one.topic, one.queue_id)) for one in queues] == [depth == 1] * len(queues)


FILES = [
    ("v533-basic", f"commitlog/{SEGMENT}", "commitlog"),
    ("v533-basic", f"consumequeue/TopicA/0/{SEGMENT}", "consumequeue"),
    ("v533-preblank", "consumequeue", "consumequeue"),
    ("v533-v2", f"commitlog/{SEGMENT}", "commitlog"),
    ("v533-basic", "index", "index"),
    ("v470-basic", "index", "index"),
    ("v533-basic", "checkpoint", "checkpoint"),
    ("v533-batchcq", "batchconsumequeue", "batchconsumequeue"),
    ("v498-cqext", "consumequeue_ext", "consumequeue_ext"),
    ("b533-timer", "config/timercheck", "timercheck"),
    ("b533-timer", "config/timermetrics", "timermetrics"),
    ("b533-timer", "timerlog", "timerlog"),
    ("b533-timer", "timerwheel", "timerwheel"),
    ("b533-controller", "epochFileCheckpoint", "epoch"),
    ("b533-controller", "brokerIdentity", "broker_identity"),
    ("b533-full", "config/topics.json", "config"),
    ("b533-full", "config/consumerOffset.json", "config"),
    ("b497-full", "config/delayOffset.json", "config"),
    ("b533-full", "compaction/position-checkpoint", "compaction_position"),
    ("b533-full", "lock", "lock"),
    ("b533-dledger", "dledger-n0/data", "dledger_data"),
    ("b533-dledger", "dledger-n0/index", "dledger_index"),
    ("b533-dledger", "dledger-n0/checkpoint", "dledger_text"),
    ("b533-dledger", "dledger-n0/currterm", "dledger_text"),
    ("b533-compaction", "compaction/compactionLog", "compaction_log"),
]


def first_file(path):
    return path if path.is_file() else min(found for found in path.rglob("*") if found.is_file())


@pytest.mark.parametrize(("name", "place", "kind"), FILES)
def test_a_single_file_in_its_place(golden, name, place, kind):
    root = golden(name).path
    path = first_file(root / place)
    store = Store.open(path)
    (file,) = store.files
    assert (store.form, store.root, str(file.kind)) == (StoreForm.FILE, root, kind)
    whole = Store.open(root).file(file.path)
    assert whole == file


@pytest.mark.parametrize(("name", "place", "kind"), FILES)
@pytest.mark.parametrize("new_name", [None, "evidence.bin"])
def test_a_single_file_copied_away(golden, tmp_path, name, place, kind, new_name):
    path = first_file(golden(name).path / place)
    copy = tmp_path / (new_name or path.name)
    shutil.copyfile(path, copy)
    (file,) = Store.open(copy).files
    alike = {"compaction_log": "commitlog"}
    assert str(file.kind) == alike.get(kind, kind)
    assert file.path == copy.name


def test_as_kind_overrides(golden, tmp_path):
    path = tmp_path / "noise"
    path.write_bytes(b"\xab" * 100)
    (file,) = Store.open(path, as_kind="consumequeue").files
    assert file.kind is FileKind.CONSUMEQUEUE
    inside = golden("v533-basic").path / "commitlog" / SEGMENT
    (file,) = Store.open(inside, as_kind=FileKind.TIMERLOG).files
    assert (file.kind, file.base_offset, file.path) == (FileKind.TIMERLOG, 0, f"commitlog/{SEGMENT}")
    store = Store.open(inside.parent, as_kind="batchconsumequeue")
    assert {file.kind for file in store.files} == {FileKind.BATCHCONSUMEQUEUE}
    with pytest.raises(UsageError, match="unknown kind nonsense; known are commitlog"):
        Store.open(path, as_kind="nonsense")


def test_a_topic_named_like_a_directory_of_the_store(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    for topic in ("commitlog", "index", "config"):
        shutil.copytree(root / "consumequeue/TopicA", root / "consumequeue" / topic)
    store = Store.open(root)
    assert {"commitlog", "index", "config"} <= {queue.topic for queue in store.queues()}
    assert len(store.segments) == 4
    folder = Store.open(root / "consumequeue")
    assert folder.form is StoreForm.FOLDER
    assert {file.kind for file in folder.files} == {FileKind.CONSUMEQUEUE}
    folder = Store.open(root / "consumequeue/commitlog")
    assert {(file.kind, file.topic) for file in folder.files} == {(FileKind.CONSUMEQUEUE, "commitlog")}


def test_a_store_root_with_an_unfortunate_name(golden, tmp_path):
    root = tmp_path / "index"
    shutil.copytree(golden("v533-basic").path, root)
    assert Store.open(root).form is StoreForm.STORE
    assert len(Store.open(root).segments) == 4


def test_stray_files_are_listed(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    strays = {
        "commitlog/.DS_Store": "the name is not a number",
        "commitlog/00000000000000000000.bak": "the name is not a number",
        "consumequeue/TopicA/x/00000000000000000000": "the name of the queue directory is not a queue number",
        "consumequeue/TopicA/stray": "only queue directories belong here",
        "consumequeue/stray": "only topic directories belong here",
        "config/broker.conf": "no configuration file of a known release has this name",
        "readme.txt": "no file of a store lies here",
        "backup/commitlog/00000000000000000000": "no file of a store lies here",
        "commitlog/sub/00000000000000000000": "too deep for a numbered file",
    }
    for path in strays:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")
    store = Store.open(root)
    assert {file.path: file.note for file in store.of_kind("unknown")} == strays
    assert len(store.segments) == 4


def test_an_empty_queue_directory_is_a_queue(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    (root / "consumequeue/Empty/3").mkdir(parents=True)
    (root / "consumequeue/Empty/no-number").mkdir()
    empty = [queue for queue in Store.open(root).queues() if queue.topic == "Empty"]
    assert [(queue.queue_id, queue.files) for queue in empty] == [(3, ())]


def test_names_in_other_digits(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    for path in [*(root / "commitlog").iterdir(), *(root / "index").iterdir()]:
        path.rename(path.parent / path.name.translate(arabic))
    store = Store.open(root)
    assert [segment.base for segment in store.segments] == [0, 32768, 65536, 98304]
    assert len(store.index_files()) == 3


def test_undecodable_names(tmp_path):
    (tmp_path / "commitlog").mkdir()
    bad = os.fsencode(tmp_path) + b"/commitlog/\xff\x1b[2J"
    with open(bad, "wb") as stream:
        stream.write(b"x")
    (file,) = Store.open(tmp_path).files
    assert file.display_path == "commitlog/\\xff\\u001b[2J"
    assert json.dumps(file.display_path).encode()
    with file.open() as source:
        assert (source.size, source.name) == (1, file.display_path)


def test_commitlog_roots(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    second, third = tmp_path / "disk2/store/commitlog", root / "commitlog-ro"
    second.mkdir(parents=True)
    third.mkdir()
    names = sorted(path.name for path in (root / "commitlog").iterdir())
    (root / "commitlog" / names[1]).rename(second / names[1])
    (root / "commitlog" / names[2]).rename(third / names[2])
    assert [hole.start for hole in Store.open(root).segments.holes()] == [32768]
    store = Store.open(root, commitlog_roots=[second, third, root / "commitlog", third])
    assert not store.segments.holes()
    assert [(one.file.root, one.file.path) for one in store.segments] == [
        (0, f"commitlog/{names[0]}"),
        (1, f"../disk2/store/commitlog/{names[1]}"),
        (2, f"commitlog-ro/{names[2]}"),
        (0, f"commitlog/{names[3]}"),
    ]
    assert len(store.roots) == 3
    assert [file.kind for file in store.files if file.name == names[2]] == [FileKind.COMMITLOG]
    with pytest.raises(UsageError, match="no such directory"):
        Store.open(root, commitlog_roots=[tmp_path / "none"])
    (root / "consumequeue" / "Odd" / "0").mkdir(parents=True)
    with pytest.raises(UsageError, match="consumequeue, which is for other files"):
        Store.open(root, commitlog_roots=[root / "consumequeue" / "Odd"])


def test_paths_of_the_settings_are_used_for_the_store_itself_only(golden, tmp_path):
    for name in ("store", "copy"):
        shutil.copytree(golden("v533-basic").path, tmp_path / name)
    second = tmp_path / "disk2"
    second.mkdir()
    (tmp_path / "store/commitlog/00000000000000098304").rename(second / "00000000000000098304")
    conf = tmp_path / "broker.conf"
    conf.write_text("storePathRootDir=store\nstorePathCommitLog=store/commitlog,disk2\n")
    config = load_broker_conf(conf)
    assert [one.file.root for one in Store.open(tmp_path / "store", config=config).segments] == [0, 0, 0, 1]
    assert [one.file.root for one in Store.open(tmp_path / "copy", config=config).segments] == [0, 0, 0, 0]


def test_links(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "00000000000000131072").write_bytes(b"x" * 100)
    (root / "commitlog/loop").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "commitlog/00000000000000131072").symlink_to(outside / "00000000000000131072")
    (root / "consumequeue/Linked").symlink_to(outside)
    (root / "commitlog/00000000000000163840").symlink_to(root / "commitlog/00000000000000000000")
    (root / "dangling").symlink_to("nowhere")
    store = Store.open(root)
    notes = {file.path: file.note for file in store.of_kind("unknown")}
    assert set(notes) == {"commitlog/loop", "self", "consumequeue/Linked/00000000000000131072", "dangling"}
    assert "in a circle" in notes["commitlog/loop"]
    assert "leads nowhere" in notes["self"]
    linked = store.file("commitlog/00000000000000131072")
    assert (linked.kind, linked.size, linked.base_offset) == (FileKind.COMMITLOG, 100, 131072)
    inner = store.file("commitlog/00000000000000163840")
    assert (inner.kind, inner.size, inner.base_offset) == (FileKind.COMMITLOG, 32768, 163840)
    outward = [note for note in store.notes if "out of the store" in note]
    assert [note.split(":")[0] for note in sorted(outward)] == [
        "commitlog/00000000000000131072",
        "consumequeue/Linked",
    ]


def test_links_that_multiply_are_followed_once(golden, tmp_path):
    """Fourteen directories, each with a link to all others, are 14! ways."""
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    count = len(Store.open(root).directories)
    names = [f"d{number}" for number in range(14)]
    for name in names:
        (root / "odd" / name).mkdir(parents=True)
        for other in names:
            (root / "odd" / name / other).symlink_to(f"../{other}")
    topic = next(one for one in (root / "consumequeue").iterdir() if any(one.iterdir()))
    (root / "consumequeue/Second").symlink_to(topic.name)
    (root / "consumequeue/Third").symlink_to(topic.name)
    store = Store.open(root)
    assert len(store.directories) < count + 40 + 3 * len(list(topic.iterdir()))
    units = {one.topic for one in store.of_kind(FileKind.CONSUMEQUEUE)}
    assert {topic.name, "Second", "Third"} <= units
    odd = [one for one in store.of_kind(FileKind.UNKNOWN) if one.path.startswith("odd/")]
    assert len(odd) <= 2 * 14 * 14


@pytest.mark.parametrize("name", ["odd", "consumequeue/T/x", "commitlog/x/y", "kvStore/x/y", "compaction/x"])
def test_a_link_out_of_the_store_leads_no_further_than_a_broker_looks(tmp_path, name):
    """It may lead to a whole file system."""
    inside = tmp_path / "disk" / "a" / "b" / "c"
    inside.mkdir(parents=True)
    (inside / "file").touch()
    (tmp_path / "disk" / "0").mkdir()
    (tmp_path / "store/commitlog").mkdir(parents=True)
    link = tmp_path / "store" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "disk")
    store = Store.open(tmp_path / "store")
    assert name in {one.path for one in store.directories}
    assert not [one.path for one in store.directories if one.path.startswith(f"{name}/")]
    assert any("out of the store, where no broker looks" in note for note in store.notes)


@pytest.mark.parametrize(
    "name",
    [
        "commitlog", "consumequeue", "consumequeue/T", "consumequeue/T/0", "compaction",
        "compaction/compactionLog", "compaction/compactionLog/T", "compaction/compactionLog/T/0", "config",
        "config/rdb", "dledger-n0", "transaction",
    ],
)  # fmt: skip
def test_a_directory_on_another_disk_is_followed_as_far_as_a_broker_looks(tmp_path, name):
    files = (
        "commitlog/00000000000000000000", "consumequeue/T/0/00000000000000000000",
        "compaction/compactionLog/T/0/compacting/00000000000000000000", "config/topics.json",
        "config/rdb/CURRENT", "dledger-n0/data/00000000000000000000", "transaction/statetable/0",
    )  # fmt: skip
    root = tmp_path / "store"
    for one in files:
        (root / one).parent.mkdir(parents=True, exist_ok=True)
        (root / one).touch()
    (root / name).rename(tmp_path / "disk")
    (root / name).symlink_to(tmp_path / "disk")
    assert {one.path for one in Store.open(root).files} == set(files)


def test_info_does_not_call_a_directory_empty_that_is_not_listed(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    (tmp_path / "disk" / "inner").mkdir(parents=True)
    (root / "odd").symlink_to(tmp_path / "disk")
    notes = [row["note"] for row in rmq("info", root, "--format", "ndjson").rows if row.get("path") == "odd/"]
    assert notes == ["directory out of the store, not listed"]


def test_a_commitlog_root_behind_a_link_out_of_the_store_is_listed(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    (tmp_path / "disk").mkdir()
    (root / "commitlog").rename(tmp_path / "disk" / "log")
    (root / "disk").symlink_to(tmp_path / "disk")
    conf = tmp_path / "broker.conf"
    conf.write_text("storePathRootDir=store\nstorePathCommitLog=store/disk/log\n")
    assert len(Store.open(root, config=load_broker_conf(conf)).segments) == 4


def test_a_commitlog_on_another_disk_is_followed(golden, tmp_path):
    """A broker does not care, so operators do it."""
    root = tmp_path / "store"
    shutil.copytree(golden("v533-basic").path, root)
    (root / "commitlog").rename(tmp_path / "disk2")
    (root / "commitlog").symlink_to(tmp_path / "disk2")
    store = Store.open(root)
    assert [one.file.path for one in store.segments] == [
        f"commitlog/{base:020}" for base in (0, 32768, 65536, 98304)
    ]


def test_a_link_given_as_the_store_is_followed(golden, tmp_path):
    (tmp_path / "link").symlink_to(golden("v533-basic").path)
    assert len(Store.open(tmp_path / "link").segments) == 4


def test_settings_and_topics(golden):
    store = Store.open(golden("b533-full").path, config=StoreConfig())
    assert store.topics["TopicTx"].attributes == {"message.type": "TRANSACTION"}
    assert store.topics["TopicReadOnly"].perm == 4
    assert not store.topics["TopicReadOnly"].writeable
    assert store.config_pair("topics.json").chosen == "primary"
    assert Store.open(golden("b533-rocksdb-v2").path).topics == {}
    assert store.lock_path == golden("b533-full").path / "lock"


def test_a_hundred_thousand_files_in_seconds(tmp_path):
    (tmp_path / "commitlog").mkdir()
    for topic in range(100):
        for queue in range(20):
            directory = tmp_path / f"consumequeue/T{topic}/{queue}"
            directory.mkdir(parents=True)
            for base in range(10):
                (directory / f"{base * 6000000:020d}").touch()
    begun = time.process_time()
    store = Store.open(tmp_path)
    assert len(store.queues()) == 2000
    assert len(store.files) == 20_000
    assert time.process_time() - begun < 5


def test_nothing_heavy_is_imported(tmp_path):
    (tmp_path / "commitlog").mkdir()
    code = (
        "import sys; from rmqtool.store.layout import Store; Store.open(sys.argv[1])\n"
        "heavy = ('pydantic', 'pyarrow', 'numba', 'javaproperties')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_not_a_store_is_no_store(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(NotAStoreError):
        Store.open(tmp_path)
