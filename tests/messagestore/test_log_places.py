"""A log that lies elsewhere, in several directories, or behind a link: each segment where a broker has it."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.broker.disk import Room
from rmqtool.errors import NotAStoreError, UsageError
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, SMALL, bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path

QUEUES = [(f"Topic{topic}", number) for topic in range(2) for number in range(3)]


def segments(place: Path) -> list[int]:
    return sorted(int(name) // 4096 for name in os.listdir(place))


def check(store: MessageStore, count: int) -> None:
    sent = traffic(0, count)
    for queue in QUEUES:
        assert bodies(store, *queue) == of_queue(sent, *queue)
    assert [one.keys for one in store.query_key("Topic1", f"key-{count - 1}")] == [[f"key-{count - 1}"]]


def paths(*places: Path, read_only: tuple[Path, ...] = ()) -> dict[str, Any]:
    more = {"readOnlyCommitLogStorePaths": ",".join(map(str, read_only))} if read_only else {}
    return {"storePathCommitLog": ",".join(map(str, places))} | more


def verified(root: Path, settings: dict[str, Any], conf: Path) -> None:
    given = SMALL | settings | {"storePathRootDir": root}
    conf.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    result = rmq("verify", root, "--store-config", conf)
    assert result.exit_code == 0, result.stdout


@pytest.mark.share
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("places", [["disk"], ["b", "a"], ["a", "b", "c"]], ids="-".join)
def test_segments_lie_in_their_directories_in_turn(tmp_path: Path, release: str, places: list[str]) -> None:
    root, settings = tmp_path / "store", paths(*(tmp_path / name for name in places))
    with open_small(root, release, **settings) as store:
        store.put_many(traffic(0, 100))
        check(store, 100)
        shutil.copytree(root, tmp_path / "killed")
    with open_small(root, release, **settings) as store:
        store.put_many(traffic(100, 100))
        check(store, 200)
        used = store.segments()
    ordered = [tmp_path / name for name in sorted(places)]
    for number, place in enumerate(ordered):
        assert segments(place) == list(range(number, used, len(places)))
    assert not (root / "commitlog").exists()
    verified(root, settings, tmp_path / "broker.conf")
    shutil.rmtree(root)
    shutil.move(tmp_path / "killed", root)  # older than the log, as behind a crash
    with open_small(root, release, **settings) as store:
        check(store, 200)
    verified(root, settings, tmp_path / "broker.conf")


def test_read_only_directories_are_read_and_expired_and_nothing_is_made_there(tmp_path: Path) -> None:
    root, old, new = tmp_path / "store", tmp_path / "old", tmp_path / "new"
    with open_small(root, **paths(old)) as store:
        store.put_many(traffic(0, 100))
        before = store.segments()
    settings = paths(new, old, read_only=(old,)) | {"deleteCommitLogFilesInterval": 0}
    with open_small(root, **settings) as store:
        store.put_many(traffic(100, 100))
        check(store, 200)
        assert segments(old) == list(range(before))
        assert min(segments(new)) == before
    for name in os.listdir(old):
        os.utime(old / name, (0, time.time() - 4 * 86_400))
    with open_small(root, **settings) as store:
        assert store.expire().segments == before
        assert segments(old) == []
    verified(root, settings, tmp_path / "broker.conf")


def test_a_full_disk_gets_no_segment_while_another_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, places = tmp_path / "store", [tmp_path / name for name in "ab"]
    full = {"a"}

    def room_of(path: str) -> Room:
        used = 88 if os.path.basename(os.path.realpath(path)) in full else 10
        return Room(100, used, 100 - used)

    monkeypatch.setattr("rmqtool.messagestore.expiry.room_of", room_of)
    with open_small(root, **paths(*places)) as store:
        store.put_many(traffic(0, 20))
        assert store.expire().segments == 0
        store.put_many(traffic(20, 180))
        check(store, 200)
        used = store.segments()
    assert segments(places[0]) == [one for one in segments(places[0]) if one < 6]
    assert {*segments(places[0]), *segments(places[1])} == {*range(used)}
    assert used > 8


def test_a_log_behind_a_link_of_ones_own(tmp_path: Path) -> None:
    root, there = tmp_path / "store", tmp_path / "disk"
    root.mkdir()
    there.mkdir()
    (root / "commitlog").symlink_to(there)
    for life in range(2):
        with open_small(root) as store:
            store.put_many(traffic(life * 50, 50))
            check(store, life * 50 + 50)
    assert segments(there)
    assert rmq("verify", root).exit_code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root follows no links of others")
def test_a_log_behind_a_link_of_another_user(tmp_path: Path) -> None:
    root, there = tmp_path / "store", tmp_path / "disk"
    root.mkdir()
    there.mkdir()
    (root / "commitlog").symlink_to(there)
    os.chown(root / "commitlog", 12345, 12345, follow_symlinks=False)
    with pytest.raises(UsageError, match="commitlog is a link that another user may change"):
        open_small(root)
    assert os.listdir(there) == []
    assert os.listdir(root) == ["commitlog"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"readOnlyCommitLogStorePaths": "a"}, "no effect without storePathCommitLog"),
        ({"storePathCommitLog": "a", "readOnlyCommitLogStorePaths": "b"}, "storePathCommitLog has no ,"),
        ({"storePathCommitLog": "a,b", "readOnlyCommitLogStorePaths": "b,a"}, "names no directory"),
        ({"storePathCommitLog": "a", "storePathRootDir": "another"}, "which is another store"),
    ],
)
def test_settings_by_which_a_broker_has_another_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        open_small(tmp_path / "store", **settings)
    assert os.listdir(tmp_path) == []


def test_no_log_is_left_behind_and_none_is_made_without_being_asked(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put(Message("T", b""))
    settings = paths(tmp_path / "disk")
    with pytest.raises(NotAStoreError):
        MessageStore.open(tmp_path / "store", config=SMALL | settings)
    assert not (tmp_path / "disk").exists()
    with pytest.raises(UsageError, match="commitlog holds files"):
        open_small(tmp_path / "store", **settings)
