"""RocketMQ's own jars from Maven, once per release and machine."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rmqtool.interop</groupId>
  <artifactId>interop</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-{artifact}</artifactId>
      <version>{release}</version>
    </dependency>
  </dependencies>
</project>
"""
QUIET = '<configuration><root level="OFF"/></configuration>\n'
JAVA_NEEDED = 17
MAVEN_SECONDS = 280

FAILURES: dict[tuple[str, str], str] = {}


class UnavailableError(Exception):
    """Something that the tests with a real RocketMQ need is missing; the text says what."""


def cache_directory() -> Path:
    """Where jars are kept: RMQTOOL_INTEROP_CACHE, else the user's cache directory."""
    given = os.environ.get("RMQTOOL_INTEROP_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "rmqtool-interop"


@cache
def check_prerequisites() -> None:
    """Raise UnavailableError unless jpype1 and Java 17 or newer are there."""
    if find_spec("jpype") is None:
        raise UnavailableError("the Python package jpype1 is not installed")
    found = java_version()
    if found < JAVA_NEEDED:
        raise UnavailableError(f"Java {JAVA_NEEDED} or newer is needed, found {found}")


def java_version() -> int:
    """Major version of the Java that would be used; UnavailableError when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        raise UnavailableError("no java on the PATH and none under JAVA_HOME")
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode or match is None:
        raise UnavailableError(f"{java} -version does not work: {(done.stderr or done.stdout).strip()[:120]}")
    return int(match[1])


def jars(release: str, artifact: str = "store") -> list[Path]:
    """The jar of ``rocketmq-<artifact>`` and all it needs; UnavailableError when Maven cannot bring them.

    A failure is remembered: Maven is asked once a run.
    """
    check_prerequisites()
    if (release, artifact) in FAILURES:
        raise UnavailableError(FAILURES[release, artifact])
    directory = cache_directory() / f"{artifact}-{release}"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "lib").is_dir():
            try:
                _resolve(release, artifact, directory)
            except UnavailableError as failure:
                FAILURES[release, artifact] = str(failure)
                raise
    return sorted((directory / "lib").glob("*.jar"))


def quiet_logging() -> Path:
    """A logback configuration that says nothing."""
    path = cache_directory() / "quiet-logback.xml"
    if not path.exists():
        path.write_text(QUIET)
    return path


@cache
def _maven() -> str:
    found = shutil.which("mvn")
    if found is None:
        raise UnavailableError("no mvn on the PATH to bring the jars of RocketMQ")
    return found


def _resolve(release: str, artifact: str, directory: Path) -> None:
    (directory / "pom.xml").write_text(POM.format(release=release, artifact=artifact))
    partial = directory / "lib.partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [_maven(), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=MAVEN_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"Maven did not bring RocketMQ {release} in {MAVEN_SECONDS} s") from None
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(
            f"Maven did not bring RocketMQ {release}: {lines[0] if lines else 'no reason'}"
        )
    partial.rename(directory / "lib")
