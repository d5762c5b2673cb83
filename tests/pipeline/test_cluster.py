"""Executors in processes of their own, one of which is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ROOT, rmq
from tests.pipeline.asking import MANY, key_file
from tests.pipeline.cluster import JOINS
from tests.pipeline.conftest import QUICK_JAVA

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full
@pytest.mark.timeout(600)
def test_local_cluster(goldens: dict[str, Path], tmp_path: Path) -> None:
    store, marker = goldens["v498-basic"], tmp_path / "marker"
    file = key_file(tmp_path, [store], absent=MANY)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.pipeline.cluster",
            "local-cluster[2,1,1024]",
            str(store),
            str(tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, **QUICK_JAVA, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    reported = json.loads(done.stdout.splitlines()[-1])
    local = rmq("verify", store, "--format", "ndjson").rows
    assert reported["results"] == ["X", f"executor:{marker}".upper(), "Y"]
    assert marker.exists()
    assert (reported["findings"], reported["records"]) == (len(local) - 1, local[-1]["records"])
    assert reported["count"] == reported["written"] == local[-1]["records"]
    assert reported["stream"][0] == 0, reported["stream"]
    for (join, source), text in zip(JOINS, reported["keys"], strict=True):
        *found, _ = map(json.loads, text.splitlines())
        options = ("--keys-file", file, "--source", source, "--format", "ndjson")
        *expected, _ = rmq("query-key", store, "-", *options).rows
        assert expected
        own = [{name: row[name] for name in row if name != "store"} for row in found]
        assert own == sorted(expected, key=lambda row: row["physical_offset"]), (join, source)
