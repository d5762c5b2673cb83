"""The cache of compiled kernels is this user's alone, or there is none."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rmqtool.scan.cache import cache_directory
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")


def test_it_is_made_for_this_user(tmp_path: Path) -> None:
    made = cache_directory([str(tmp_path / "a" / "b")], "kernels-1")
    assert made == str(tmp_path / "a" / "b" / "kernels-1")
    assert os.stat(made).st_mode & 0o777 == 0o700
    assert cache_directory(["relative", str(tmp_path / "a" / "b")], "kernels-1") == made


@as_root
@pytest.mark.parametrize(
    "theirs", ["a", "a/b", "a/b/kernels-1", "a/b/kernels-1/sub", "a/b/kernels-1/sub/code"]
)
@pytest.mark.parametrize("how", ["owned", "writable"])
def test_anything_of_another_user_means_no_cache(
    tmp_path: Path, theirs: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither there nor anywhere else, and nothing is written; `--debug` shows why."""
    caplog.set_level(logging.DEBUG)
    sub = tmp_path / "a/b/kernels-1/sub"
    sub.mkdir(parents=True)
    (sub / "code").write_bytes(b"machine code")
    if how == "owned":
        os.chown(tmp_path / theirs, NOBODY, NOBODY)
    else:
        (tmp_path / theirs).chmod(0o777)
    before = sorted(tmp_path.rglob("*"))
    assert cache_directory([str(tmp_path / "a/b"), str(tmp_path / "other")], "kernels-1") is None
    assert caplog.messages == [f"compiling for this run only: another user may change {tmp_path / theirs}"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    in_file, good = str(tmp_path / "file" / "x"), str(tmp_path / "good")
    assert cache_directory([in_file, good], "k") == str(tmp_path / "good" / "k")
    assert capsys.readouterr().err == ""
    assert cache_directory([in_file], "k") is None
    assert capsys.readouterr().err == "rmqtool: no writable cache directory, compiling for this run only\n"


def test_settings_in_the_current_directory_are_not_taken(tmp_path: Path) -> None:
    """A stranger's store may be the current directory; numba would load machine code from where they say.

    Nor is a cache in a directory that others may write, whatever names it.
    """
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path}\n")
    code = (
        "import os, rmqtool.scan.kernels.compiler as compiler, numba\n"
        "numba.njit(lambda: 1)()\n"
        "print(numba.config.CACHE_DIR, os.getcwd(), compiler._DIRECTORY)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(theirs)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == ([str(tmp_path), "None"], "")
    assert list(theirs.iterdir()) == []
