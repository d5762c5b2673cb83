"""The bar: only where somebody sees it, only when it takes a while."""

from __future__ import annotations

import io
import sys

import pytest

from rmqtool.output import progress
from rmqtool.output.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_as_stderr(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called inside the test: pytest sets its own sys.stderr between fixtures and test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_nothing_within_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    with Progress("scan", 100, enabled=True, color=False) as bar:
        bar.advance(50)
    assert terminal.getvalue() == ""


def test_bar_appears_and_leaves_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with Progress("[scan]", 100, enabled=True, color=False) as bar:
        bar.advance(50)
        bar.clear()
        shown = terminal.getvalue()
        bar.advance(10)
    assert "[scan]" in shown
    assert shown.endswith("\x1b[2K")


def test_quiet_or_piped_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with Progress("scan", 100, enabled=False, color=False) as bar:
        bar.advance(50)
    assert terminal.getvalue() == ""
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Progress("scan", 100, enabled=True, color=False) as bar:
        bar.advance(50)
    assert pipe.getvalue() == ""


def test_a_dumb_terminal_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with Progress("scan", 100, enabled=True, color=False) as bar:
        bar.advance(50)
    assert terminal.getvalue() == ""


def test_files_are_counted_where_nobody_knows_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with Progress("listing", None, enabled=True, color=False) as bar:
        bar.reach(1_234_567)
        bar.clear()
    assert "1,234,567 files" in terminal.getvalue()


@pytest.mark.parametrize(
    ("done", "seconds", "told"),
    [
        (0, 1, "0 B of 1.0 GiB, 0 B/s"),
        (256 << 20, 4, "256.0 MiB of 1.0 GiB, 64.0 MiB/s, 0:00:12 left"),
        (1 << 30, 16, "1.0 GiB, finishing"),
        (3 << 30, 16, "3.0 GiB, finishing"),
    ],
)
def test_one_unit_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch, done: int, seconds: int, told: str
) -> None:
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setenv("COLUMNS", "120")
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress("scan", 1 << 30, enabled=True, color=False) as bar:
        now[0] += max(seconds, 1)
        bar.reach(done)
        bar.clear()
    assert told in terminal.getvalue()
    assert "kB" not in terminal.getvalue()


def test_the_bar_never_goes_back_and_is_not_full_before_the_end() -> None:
    bar = Progress("reading", 0, enabled=False, color=False)
    shares = [bar.share]
    for step in (
        lambda: bar.expect(100), lambda: bar.advance(60), lambda: bar.expect(200), lambda: bar.advance(70),
        lambda: bar.expect_more(70), lambda: bar.advance(70), lambda: bar.expect_more(100),
        lambda: bar.advance(100), lambda: bar.advance(50),
    ):  # fmt: skip
        step()
        shares.append(bar.share)
    assert shares[2] == pytest.approx(0.6)
    assert shares[4] == pytest.approx(0.8)
    assert shares == sorted(shares)
    assert max(shares) <= progress.MOST < 1
