"""One Spark session for all tests of a process."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fixtures
from tests.helpers import ROOT, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


GOLDENS = ("v498-basic", "v533-compressed", "v533-batchcq", "v498-edge")
DAMAGED = 2
EACH = 8
"""one of so many damaged stores is in a full run, others with another seed"""
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""a Java that compiles half as much: nothing in tests runs long enough to earn it"""
SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-Drmqtool.tests=yes"}
S3_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session logs its events, plans and settings."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(events: Path) -> Iterator[SparkSession]:
    """A session as the commands make it; commands that run in this process use it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    from rmqtool.pipeline.session import make_session

    os.environ.update(S3_ENVIRONMENT)
    # once a process: workers keep what they were started with, and modules elsewhere import this fixture
    os.environ.setdefault("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    from rmqtool.pipeline.source import RocketMQSource

    assert str(ROOT) in sys.path
    with pytest.MonkeyPatch.context() as patched:
        for name, value in QUICK_JAVA.items():
            patched.setenv(name, value)
        # two attempts instead of four: what dies each time is given up sooner, what dies once is not
        reported = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
        session = make_session("local[2,2]", SETTINGS | reported)
    session.dataSource.register(RocketMQSource)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def bucket(spark: SparkSession) -> Iterator[str]:
    """Name of a bucket of an S3 server on the loopback, at the address that the session's workers know."""
    import s3fs
    from moto.server import ThreadedMotoServer

    port = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    s3fs.S3FileSystem().mkdir("stores")
    yield "stores"
    server.stop()


@pytest.fixture(scope="session")
def goldens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A choice of goldens: name → root."""
    directory = tmp_path_factory.mktemp("goldens")
    return {name: fixtures.open_golden(name, directory).path for name in GOLDENS}


@pytest.fixture(scope="session")
def damaged_stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A choice of the damage corpus: id → root."""
    directory = tmp_path_factory.mktemp("damaged")
    every = list(fixtures.damage_cases())
    chosen = every[:: len(every) // DAMAGED]
    return {case.id: fixtures.apply_case(case, directory / case.id) for case in chosen}


@pytest.fixture(scope="session")
def every_store(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> list[Path]:
    """All goldens, and as much of the damage corpus as goes through Spark in minutes."""
    place = tmp_path_factory.mktemp("every")
    paths = [fixtures.open_golden(name, place).path for name in fixtures.golden_names()]
    begin = int(pytestconfig.getoption("hypothesis_seed") or 0) % EACH
    chosen = list(fixtures.damage_cases())[begin::EACH]
    return paths + [fixtures.apply_case(case, place / case.id) for case in chosen]
