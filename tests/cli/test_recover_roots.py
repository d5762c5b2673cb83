"""A log elsewhere than in `commitlog`, where no broker of it looks: segments are made beside the others."""

from __future__ import annotations

import pytest

from fixtures.stores import healthy_store
from tests.helpers import rmq
from tests.repair.smallstore import tree

LOST = "00000000000000016384"


@pytest.fixture(params=["beside", "in the store"])
def several(request, tmp_path):
    """A store whose log lies in two other directories, without one segment; and its settings."""
    root = tmp_path / "store"
    base = tmp_path if request.param == "beside" else root
    places = [base / "first", base / "second"]
    healthy_store().write(root)
    segments = sorted((root / "commitlog").iterdir())
    for number, place in enumerate(places):
        place.mkdir()
        for path in segments[number::2]:
            path.rename(place / path.name)
    (root / "commitlog").rmdir()
    (places[0] / LOST).unlink()
    conf = tmp_path / "broker.conf"
    conf.write_text(
        f"storePathRootDir={root}\nstorePathCommitLog={places[0]},{places[1]}\n"
        "mappedFileSizeCommitLog=4096\nmappedFileSizeConsumeQueue=400\n"
    )
    return root, places, conf


@pytest.mark.parametrize("named", [True, False])
def test_a_segment_is_made_where_the_log_lies(several, tmp_path, named):
    root, places, conf = several
    before = [tree(one) for one in (root, *places)]
    log = ["--store-config", conf] if named else [x for place in places for x in ("--commitlog", place)]
    done = rmq("recover", root, *log, "--in-place", "--backup", tmp_path / "backup", "--apply")
    assert done.exit_code == 0
    assert not (root / "commitlog").exists()
    assert [(place / LOST).exists() for place in places] == [True, False]
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert [tree(one) for one in (root, *places)] == before


def test_what_was_recovered_goes_on_where_the_log_lies(several, tmp_path):
    root, _, conf = several
    assert (
        rmq(
            "recover", root, "--store-config", conf, "--in-place", "--backup", tmp_path / "backup", "--apply"
        ).exit_code
        == 0
    )
    put = rmq("store", "put", root, "Orders", "--body", "next", "--store-config", conf)
    assert put.exit_code == 0, put.stderr


def test_a_copy_has_all_segments_in_one_directory(several, tmp_path):
    root, _, conf = several
    copy = tmp_path / "copy"
    assert rmq("recover", root, "--store-config", conf, "--output", copy, "--apply").exit_code == 0
    assert [int(path.name) for path in sorted((copy / "commitlog").iterdir())] == list(range(0, 36864, 4096))
