"""Names, kinds and sizes of files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fixtures
from fixtures import DamageCase, Golden
from rmqtool.check.findings import Finding, Severity
from rmqtool.check.layout import check_layout
from rmqtool.store.config import StoreConfig
from rmqtool.store.layout import Store
from tests.tiers import of_each_kind

Fresh = Callable[[str], Golden]

CASES = [one for one in fixtures.damage_cases() if one.cls == "layout"]
BY_CONTENT = {
    "extra-zero-1", "extra-zero-2", "first-renamed-gap", "missing-first", "missing-first-two", "missing-last",
    "missing-last-two", "only-first-left", "swapped-segments", "twin-copy", "twin-copy-blank",
}  # fmt: skip
"""look-ahead segments and expired heads, and what only the records can tell"""
SIZES = {
    "short-last": (40000, 25536),
    "short-middle": (40000, 25536),
    "short-by-1": (65535, 1),
    "long-by-1": (65536, 1),
}


ARABIC = {ord("0") + number: 0x660 + number for number in range(10)}
"""digits of a broker whose locale is Arabic"""


def layout_of(root: Path, **settings: object) -> list[Finding]:
    config = StoreConfig.model_validate(settings) if settings else None
    return list(check_layout(Store.open(root, config=config)))


@pytest.mark.parametrize("name", of_each_kind(fixtures.golden_names()))
def test_goldens_are_silent(name: str, golden: Callable[[str], Golden]) -> None:
    for root in golden(name).stores.values():
        assert layout_of(root) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("settings", ["given", "inferred"])
def test_damage_is_found(case: DamageCase, settings: str, damaged: Callable[[DamageCase], Path]) -> None:
    root = damaged(case)
    found = layout_of(root, **(case.settings if settings == "given" else {}))
    loud = [one for one in found if one.severity is not Severity.NOTE]
    if case.variant == "short-name":
        assert [(one.code, one.severity) for one in found] == [("DIR-NAME", Severity.WARNING)]
        return
    if case.variant in BY_CONTENT:
        assert found == []
        return
    touched = {path for path in case.damaged if path not in ("abort", "checkpoint")}
    assert {one.path for one in loud} <= touched | {"commitlog", "commitlog/00000000000000458752"}
    assert loud
    if case.variant in SIZES:
        (one,) = found
        assert (one.code, one.position, one.length) == ("DIR-SIZE", *SIZES[case.variant])


HEALTHY = [one for one in fixtures.damage_cases() if one.cls == "none"]


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.id)
def test_bases_are_silent(case: DamageCase, damaged: Callable[[DamageCase], Path]) -> None:
    assert layout_of(damaged(case), **case.settings) == []


def codes(found: list[Finding]) -> list[tuple[str, str | None]]:
    return [(one.code, one.path) for one in found]


def test_settings_that_do_not_fit(golden: Callable[[str], Golden]) -> None:
    (one,) = layout_of(golden("v498-basic").path, mappedFileSizeCommitLog=1 << 30)
    assert (one.code, one.path, one.expected, one.found) == ("DIR-SETTING", "commitlog", 1 << 30, 32768)


def test_queue_files_of_two_sizes(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    file = next(iter(sorted((root / "consumequeue/TopicA/0").iterdir())))
    os.truncate(file, 500)
    (one,) = layout_of(root)
    assert (one.code, one.position, one.length, one.topic, one.queue_id) == (
        "DIR-SIZE",
        500,
        500,
        "TopicA",
        0,
    )


def test_a_gap_names_the_file_that_is_missing(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    (root / "commitlog/00000000000000032768").unlink()
    (one,) = layout_of(root)
    assert (one.code, one.path) == ("DIR-GAP", "commitlog/00000000000000032768")
    assert (one.physical_offset, one.length) == (32768, 32768)


def test_a_gap_in_the_timer_log(fresh_golden: Fresh) -> None:
    """Its first files expire, and its last ones are made anew."""
    root = fresh_golden("b533-timer").path
    for base in (0, 1040, 1560, 2600):
        (root / f"timerlog/{base:020d}").unlink()
    (one,) = layout_of(root)
    assert (one.code, one.path, one.length) == ("DIR-GAP", f"timerlog/{1040:020d}", 1040)


def test_twins_in_two_roots(fresh_golden: Fresh, tmp_path: Path) -> None:
    root = fresh_golden("v533-basic").path
    other = tmp_path / "disk2"
    other.mkdir()
    (other / "00000000000000032768").write_bytes(bytes(32768))
    (one,) = check_layout(Store.open(root, commitlog_roots=[other]))
    assert (one.code, one.physical_offset, one.length) == ("DIR-TWIN", 32768, 32768)


def test_a_stray_file_in_another_root(fresh_golden: Fresh, tmp_path: Path) -> None:
    """A broker lists all roots together, and does not start over a name that is not an offset."""
    root = fresh_golden("v533-basic").path
    other = tmp_path / "disk2"
    other.mkdir()
    (root / "commitlog/00000000000000000000").rename(other / "00000000000000000000")
    (other / "notes.txt").write_bytes(b"-")
    (other / "lost+found").mkdir()
    (other / "lost+found/1234").write_bytes(b"-")
    found = check_layout(Store.open(root, commitlog_roots=[other]))
    (one,) = [one for one in found if one.severity != "note"]
    assert (one.code, one.severity) == ("DIR-STRAY", "warning")
    assert one.path is not None
    assert one.path.endswith("disk2/notes.txt")


def test_segments_that_overlap(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    (root / "commitlog/00000000000000100000").write_bytes(bytes(32768))
    found = [one for one in layout_of(root) if one.code == "DIR-OVERLAP"]
    assert [(one.path, one.physical_offset) for one in found][:1] == [
        ("commitlog/00000000000000100000", 100_000)
    ]


def test_strangers(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    (root / "notes.txt").write_text("x")
    (root / "backup/deep").mkdir(parents=True)
    for number in range(3):
        (root / f"backup/deep/{number}").touch()
    (root / "consumequeue/TopicA/0/x.bak").touch()
    (root / "consumequeue/TopicA/old").mkdir()
    (root / "consumequeue/TopicA/0/lost+found").mkdir()
    (root / "index/readme").touch()
    (root / "index/20230101000000000").mkdir()
    os.mkfifo(root / "commitlog/00000000000009999999")
    assert sorted((one.code, one.path, one.severity.value) for one in layout_of(root)) == [
        ("DIR-DIRECTORY", "consumequeue/TopicA/0/lost+found", "warning"),
        ("DIR-DIRECTORY", "index/20230101000000000", "warning"),
        ("DIR-STRAY", "commitlog/00000000000009999999", "warning"),
        ("DIR-STRAY", "consumequeue/TopicA/0/x.bak", "warning"),
        ("DIR-UNKNOWN", "backup", "note"),
        ("DIR-UNKNOWN", "consumequeue/TopicA/old", "note"),
        ("DIR-UNKNOWN", "index/readme", "note"),
        ("DIR-UNKNOWN", "notes.txt", "note"),
    ]


def test_empty_files(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    (root / "index/1").touch()
    (root / "commitlog/00000000000000131072").touch()
    assert codes(layout_of(root)) == [
        ("DIR-EMPTY-FILE", "commitlog/00000000000000131072"),
        ("DIR-EMPTY-FILE", "index/1"),
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_listed(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    (root / "index").chmod(0)
    try:
        found = layout_of(root)
    finally:
        (root / "index").chmod(0o700)
    assert codes(found) == [("DIR-UNREADABLE", "index")]


def test_no_log_at_all(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    for file in (root / "commitlog").iterdir():
        file.unlink()
    (one,) = layout_of(root)
    assert (one.code, one.path, one.severity) == ("DIR-NO-LOG", "commitlog", Severity.ERROR)


def test_no_log_and_no_queues(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    shutil.rmtree(root / "commitlog")
    shutil.rmtree(root / "consumequeue")
    (one,) = layout_of(root)
    assert (one.code, one.path, one.severity) == ("DIR-LOG-GONE", "commitlog", Severity.ERROR)
    shutil.rmtree(root / "index")
    (root / "checkpoint").write_bytes(bytes(4096))
    assert layout_of(root) == []


@pytest.mark.parametrize(
    ("golden_name", "path", "name"),
    [
        ("v533-basic", "commitlog/00000000000000032768", "32768"),
        ("v533-basic", "consumequeue/TopicA/0/00000000000000001000", "1000"),
        ("v533-basic", "consumequeue/TopicA/0/00000000000000001000", "+0000000000000001000"),
        ("v533-basic", "consumequeue/TopicA/0/00000000000000001000", f"{1000:020d}".translate(ARABIC)),
        ("v533-cqext", "consumequeue_ext/TopicExt/0/00000000000000001024", "1024"),
    ],
)
def test_a_name_that_puts_a_file_in_another_place_is_an_error(
    golden_name: str, path: str, name: str, fresh_golden: Fresh
) -> None:
    """A broker sorts by name: entries or messages behind this file come before it. `verify` said nothing."""
    root = fresh_golden(golden_name).path
    (root / path).rename((root / path).with_name(name))
    (one,) = layout_of(root)
    assert (one.code, one.severity) == ("DIR-NAME", Severity.ERROR)
    assert (one.path, one.expected, one.found) == (f"{Path(path).parent}/{name}", Path(path).name, name)


def test_a_store_of_another_locale_has_its_own_digits(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    for path in [*root.glob("commitlog/*"), *root.glob("consumequeue/*/*/*")]:
        path.rename(path.with_name(path.name.translate(ARABIC)))
    assert layout_of(root) == []
