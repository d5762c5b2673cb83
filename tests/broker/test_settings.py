"""What `broker.conf` says of a start, where a broker does not take it as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.stores import HandmadeStore
from rmqtool.broker.settings import settings_of
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store


@pytest.mark.parametrize(
    ("given", "master"),
    [
        ({}, True),
        ({"brokerId": "1"}, True),
        ({"brokerId": "1", "brokerRole": "SYNC_MASTER"}, True),
        ({"brokerId": "1", "brokerRole": "SLAVE"}, False),
        ({"brokerId": "9" * 5000, "brokerRole": "SLAVE"}, True),
        ({"brokerId": "18446744073709551617", "brokerRole": "SLAVE"}, True),
        ({"brokerId": "2", "enableControllerMode": "true"}, False),
        ({"brokerId": "x", "enableControllerMode": "true"}, True),
    ],
)
def test_masters_have_number_0_whatever_is_given(tmp_path: Path, given: dict[str, str], master: bool) -> None:
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    assert settings_of(Store.open(store.root), config_of(given)).master is master
