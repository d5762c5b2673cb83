"""The README's command on Spark prints what is shown there, in the session that tests share."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from fixtures.builder import damage_file, overwrite
from tests.helpers import ROOT, rmq

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_many_stores(spark: SparkSession, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text()
    command, _, shown = page.partition("$ rmqtool pipeline ")[2].partition("```")[0].partition("\n")
    demo, repaired = tmp_path / "demo", tmp_path / "demo-repaired"
    shutil.copytree(ROOT / "fixtures/golden/b533-full/store", demo)
    (demo / "abort").touch()
    damage_file(demo / "commitlog/00000000000000032768", overwrite, 3432, b"X")
    assert rmq("recover", demo, "--output", repaired, "--apply").exit_code == 0
    words = [str(tmp_path / one) if one.startswith("demo") else one for one in shlex.split(command)]
    done = rmq("pipeline", *words[: words.index(">")])
    assert done.stderr.replace(f"{tmp_path}/", "/data/") == shown
