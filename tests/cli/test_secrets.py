"""Secrets of a broker in what commands print of a store's tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers import rmq


@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv"])
def test_values_of_secrets_are_not_listed(fresh_golden: Any, form: str) -> None:
    config = fresh_golden("v533-tx").path / "config"
    config.mkdir(exist_ok=True)
    table = {
        "users": [{"username": "anna", "password": "hush-1"}],
        "accessKey": "hush-2",
        "x": {"SecretKey": 3},
    }
    (config / "users.json").write_text(json.dumps(table))
    result = rmq("dump", config / "users.json", "--format", form)
    assert result.exit_code == 0
    assert "anna" in result.stdout
    assert "***" in result.stdout
    assert "hush" not in result.stdout + result.stderr


def test_files_of_keys_are_named_and_not_opened(fresh_golden: Any) -> None:
    root = fresh_golden("v533-tx").path
    (root / "plain_acl.yml").write_text("accounts:\n- secretKey: hush\n")
    (root / "server.key").write_text("hush")
    for words in (["info", root], ["dump", root], ["verify", root], ["dump", root / "plain_acl.yml"]):
        result = rmq(*words)
        assert "hush" not in result.stdout + result.stderr
