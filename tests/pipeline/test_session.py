"""Sessions have our settings beside those of the user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqtool.pipeline.runner import run_each
from rmqtool.pipeline.session import with_retries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "made"),
    [
        ("local", "local[1,4]"), ("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"), ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)  # fmt: skip
def test_local_masters_try_again(master: str, made: str) -> None:
    assert with_retries(master) == made


def test_options_of_java_are_added_to_ours(spark: SparkSession) -> None:
    properties = spark.sparkContext._jvm.java.lang.System
    assert properties.getProperty("log4j2.configurationFile").endswith("/rmqtool/pipeline/log4j2.properties")
    assert properties.getProperty("rmqtool.tests") == "yes"


def parent(item: str) -> str:
    """The command line of the process that a worker was forked from."""
    return item + Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " ")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
def test_workers_come_from_our_daemon(spark: SparkSession) -> None:
    ((_, (told,)),) = run_each(spark, {"a": ["forked from "]}, parent)
    assert str(told).split()[-2:] == ["rmqtool.pipeline.daemon", "pyspark.worker"]
