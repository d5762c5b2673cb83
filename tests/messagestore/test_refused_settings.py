"""Settings that a message store refuses, or passes over with a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"storeType": "defaultRocksDB"}, "storeType"),
        ({"enableDLegerCommitLog": True}, "enableDLegerCommitLog"),
        ({"mappedFileSizeCommitLog": 1 << 31}, "mappedFileSizeCommitLog"),
        ({"flushDiskType": "NEVER"}, "flushDiskType"),
        ({"mappedFileSizeComitLog": 4096}, "mappedFileSizeCommitLog is"),
        ({"mappedfilesizecommitlog": 4096}, "mappedFileSizeCommitLog is"),
        ({"FLUSHDISKTYPE": "SYNC_FLUSH"}, "flushDiskType is"),
        ({"messageDelayLevel": "1x"}, "messageDelayLevel"),
        ({"brokerRole": "LEADER"}, "brokerRole"),
        ({"brokerIP1": "no..where"}, "brokerIP1=no..where: no address and no known host"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MessageStore.open(tmp_path / "store", create=True, config=settings)
    assert not (tmp_path / "store").exists()


def test_a_broker_conf_and_unknown_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=a\nmappedFileSizeCommitLog=4096\nsomethingOfOurOwn=1\nmaxMsgsNumBatch=64\n")
    with MessageStore.open(tmp_path / "store", create=True, config=conf) as store:
        store.put(Message("T", b"x"))
    assert (tmp_path / "store" / "commitlog" / ("0" * 20)).stat().st_size == 4096
    assert "somethingOfOurOwn" in caplog.text
    assert "maxMsgsNumBatch has no effect" in caplog.text
    assert "brokerName" not in caplog.text
