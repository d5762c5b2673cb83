"""Where something is missing the tests with a real RocketMQ say what, and say it in the summary."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ROOT
from tests.interop import jars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An otherwise empty PATH in which a test puts its own `java` and `mvn`, and a cache of its own."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("RMQTOOL_INTEROP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "FAILURES", {})
    jars.check_prerequisites.cache_clear()
    jars._maven.cache_clear()
    yield directory
    jars.check_prerequisites.cache_clear()
    jars._maven.cache_clear()


def tool(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def java(directory: Path, version: str) -> None:
    tool(directory, "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


def test_no_java(tools: Path) -> None:
    with pytest.raises(jars.UnavailableError, match="no java on the PATH"):
        jars.jars("5.3.3")


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("11.0.2", 11)]
)
def test_java_versions(tools: Path, version: str, major: int) -> None:
    java(tools, version)
    assert jars.java_version() == major


def test_an_old_java(tools: Path) -> None:
    java(tools, "1.8.0_402")
    with pytest.raises(jars.UnavailableError, match="Java 17 or newer is needed, found 8"):
        jars.jars("5.3.3")


def test_no_maven(tools: Path) -> None:
    java(tools, "17.0.15")
    with pytest.raises(jars.UnavailableError, match="no mvn on the PATH"):
        jars.jars("5.3.3")


def test_a_failing_maven_is_asked_once(tools: Path, tmp_path: Path) -> None:
    java(tools, "17.0.15")
    tool(tools, "mvn", f"echo asked >> {tmp_path}/asked; echo '[ERROR] Unknown host'; exit 1")
    for _ in range(2):
        with pytest.raises(
            jars.UnavailableError, match=r"Maven did not bring RocketMQ 5.3.3: \[ERROR\] Unknown"
        ):
            jars.jars("5.3.3")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_jars_are_kept(tools: Path, tmp_path: Path) -> None:
    java(tools, "17.0.15")
    take = "for word; do case $word in -DoutputDirectory=*) d=${word#*=};; esac; done"
    make = f'{take}; /bin/mkdir "$d"; : > "$d/a.jar"'
    tool(tools, "mvn", make)
    kept = tmp_path / "cache/store-5.3.3/lib/a.jar"
    assert jars.jars("5.3.3") == [kept]
    (tools / "mvn").unlink()
    assert jars.jars("5.3.3") == [kept]
    assert "<version>5.3.3</version>" in (tmp_path / "cache/store-5.3.3/pom.xml").read_text()


def test_a_run_without_java_ends_with_the_reason(tools: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/interop/test_logs_interop.py",
        "-m",
        "not bench",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "4 skipped" in done.stdout
    assert "interop: not compared with a real RocketMQ: no java on the PATH" in done.stdout
