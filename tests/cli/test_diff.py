"""Two stores: slave behind and ahead, divergent tail, a flipped byte, the same messages elsewhere."""

from __future__ import annotations

import shutil

import pytest

from rmqtool import Message, MessageStore
from rmqtool.query.diff import records
from tests.helpers import rmq

SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 4000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}


def put(root, bodies, topic="T", *, create=False):
    with MessageStore.open(root, create=create, release="5.3.3", config=SETTINGS) as store:
        return [
            store.put(Message(topic, body, queue_id=number % 2, keys=(f"k{number}",)))
            for number, body in enumerate(bodies)
        ]


@pytest.fixture
def pair(tmp_path):
    """Two copies of one store of three segments, and what was put."""
    a, b = tmp_path / "a", tmp_path / "b"
    acks = put(a, [b"%d " % one * 60 for one in range(500)], create=True)
    shutil.copytree(a, b)
    return a, b, acks


def compared(a, b, *args):
    done = rmq("diff", a, b, "--format", "ndjson", *args)
    assert "Traceback" not in done.stderr
    *rows, summary = done.rows
    ranges = [(row["state"], row["from"], row["to"]) for row in rows if row["type"] == "range"]
    return done.exit_code, ranges, [row for row in rows if row["type"] == "message"], summary


def test_equal_stores(pair, store_unchanged):
    a, b, acks = pair
    store_unchanged(a), store_unchanged(b)
    code, ranges, messages, summary = compared(a, b)
    assert (code, messages, summary["verdict"], summary["keep"]) == (0, [], "equal", "both")
    assert [state for state, _, _ in ranges] == ["equal"]
    assert ranges[0][2] > acks[-1].physical_offset


@pytest.mark.parametrize("swapped", [False, True])
def test_a_slave_that_is_behind_or_ahead(pair, swapped):
    a, b, _ = pair
    more = put(a, [b"more %d" % one for one in range(40)])
    one, other = (b, a) if swapped else (a, b)
    code, ranges, messages, summary = compared(one, other)
    side = "b" if swapped else "a"
    assert (code, summary["verdict"], summary["keep"]) == (1, f"{side}_ahead", side)
    assert [state for state, _, _ in ranges] == ["equal", f"only_{side}"]
    assert ranges[1][1] == more[0].physical_offset
    assert [row["uniq_key"] for row in messages] == [ack.uniq_key for ack in more]
    assert {row["state"] for row in messages} == {f"only_{side}"}
    assert summary["first_difference"]["physical_offset"] == more[0].physical_offset
    assert summary["first_difference"]["b" if side == "a" else "a"] is None


def test_a_divergent_tail(pair, tmp_path):
    """F03: the old master and the new one went on from the same place."""
    a, b, _ = pair
    ours = put(a, [b"ours %d" % one for one in range(30)])
    theirs = put(b, [b"of the new master %d" % one for one in range(50)])
    target = tmp_path / "only-a.replay"
    code, ranges, messages, summary = compared(a, b, "--export-only-in", "a", "--to", target)
    assert (code, summary["verdict"], summary["keep"]) == (1, "diverged", "b")
    assert "30 messages only in a" in summary["why"]
    assert ranges[1][:2] == ("different", ours[0].physical_offset)
    assert (summary["only_a"], summary["only_b"]) == (30, 50)
    assert summary["first_difference"]["a"]["uniq_key"] == ours[0].uniq_key
    assert summary["first_difference"]["b"]["uniq_key"] == theirs[0].uniq_key
    assert summary["exported"]["messages"] == 30
    listed = rmq("dump", target, "--format", "ndjson").of_type("message")
    assert [row["uniq_key"] for row in listed] == [ack.uniq_key for ack in ours]
    assert {row["state"] for row in messages} == {"only_a", "only_b"}


@pytest.mark.parametrize("back", [30, 200])
def test_one_flipped_byte_in_the_middle(pair, back):
    """In the body, whose CRC tells which one is intact, and in the properties behind it."""
    a, b, acks = pair
    place = acks[250].physical_offset
    name = sorted(one for one in (b / "commitlog").iterdir() if one.name.isdecimal())
    file = [one for one in name if int(one.name) <= place][-1]
    raw = bytearray(file.read_bytes())
    at = acks[251].physical_offset - int(file.name) - back
    raw[at] ^= 0x20
    file.write_bytes(raw)
    code, ranges, messages, summary = compared(a, b)
    assert code == 1
    assert ranges == [
        ("equal", 0, place),
        ("different", place, acks[251].physical_offset),
        ("equal", acks[251].physical_offset, ranges[-1][2]),
    ]
    assert summary["first_difference"]["a"]["uniq_key"] == acks[250].uniq_key
    if back == 200:
        assert (summary["keep"], summary["changed"], summary["only_a"]) == ("a", 1, 0)
        assert "b is damaged" in summary["why"]
        assert [row["state"] for row in messages] == ["changed"]
    else:
        assert summary["verdict"] == "diverged"


def test_the_same_messages_at_other_offsets(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    put(a, [b"%d" % one for one in range(20)], create=True)
    copied = tmp_path / "all.replay"
    assert rmq("export", a, "--to", copied).exit_code == 0
    put(b, [b"first"], topic="Other", create=True)
    done = rmq("store", "load", b, copied)
    assert done.exit_code == 0, done.stderr
    code, _, messages, summary = compared(a, b)
    assert (code, summary["moved"], summary["only_a"], summary["only_b"]) == (1, 20, 0, 1)
    assert summary["keep"] == "b"
    moved = [row for row in messages if row["state"] == "moved"]
    assert all(row["b_physical_offset"] > row["physical_offset"] for row in moved)


def test_segments_that_one_does_not_have(pair):
    a, b, acks = pair
    segments = sorted(one for one in (b / "commitlog").iterdir() if one.name.isdecimal())
    second = int(segments[1].name)
    segments[0].unlink()
    code, ranges, messages, summary = compared(a, b)
    assert (code, summary["verdict"], summary["keep"]) == (1, "a_ahead", "a")
    assert ranges[0] == ("only_a", 0, second)
    assert len(messages) == sum(ack.physical_offset < second for ack in acks)
    segments[1].unlink()
    (b / "commitlog" / segments[0].name).write_bytes((a / "commitlog" / segments[0].name).read_bytes())
    _, ranges, _, summary = compared(a, b)
    assert ranges[1][:2] == ("only_a", second)
    assert summary["only_b"] == 0


def test_many_differences_go_in_shares(pair, monkeypatch):
    """Memory does not go with the number of messages: each share of them is a pass of its own."""
    a, b, _ = pair
    put(a, [b"ours %d" % one for one in range(300)])
    put(b, [b"theirs %d" % one for one in range(200)])
    whole = compared(a, b)
    monkeypatch.setattr(records, "MOST", 40)
    shared = compared(a, b)
    assert (whole[3]["only_a"], whole[3]["only_b"]) == (300, 200)
    assert shared[3] == whole[3]
    key = lambda row: (row["state"], row["physical_offset"])  # noqa: E731
    assert sorted(shared[2], key=key) == sorted(whole[2], key=key)


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_other_forms(pair, form):
    a, b, _ = pair
    put(a, [b"more"])
    done = rmq("diff", a, b, "--format", form)
    assert done.exit_code == 1
    assert "only_a" in done.stdout


def test_wrong_usage(pair, tmp_path):
    a, b, _ = pair
    assert rmq("diff", a, b, "--export-only-in", "a").exit_code == 2
    assert rmq("diff", a, b, "--to", tmp_path / "x").exit_code == 2
    assert rmq("diff", a, b, "--export-only-in", "a", "--to", a / "x.replay").exit_code == 2
    assert not (a / "x.replay").exists()


@pytest.mark.share
@pytest.mark.parametrize("seed", range(3))
def test_garbage_ends_in_an_answer(pair, seed):
    import random

    a, b, _ = pair
    chance = random.Random(seed)
    for file in (b / "commitlog").iterdir():
        raw = bytearray(file.read_bytes())
        for _ in range(20):
            at = chance.randrange(max(len(raw), 1))
            raw[at : at + 40] = chance.randbytes(40)
        file.write_bytes(raw[: len(raw) - chance.randrange(300)])
    code, ranges, messages, summary = compared(a, b)
    assert code in {1, 3}
    assert all({"state", "uniq_key"} <= row.keys() for row in messages)
    assert summary["verdict"] in {"diverged", "a_ahead", "b_ahead"}
    assert all(start < end for _, start, end in ranges)
    assert [one[1] for one in ranges[1:]] == [one[2] for one in ranges[:-1]]


@pytest.mark.timeout(30)
def test_a_segment_with_a_far_number(pair):
    """What lies between two files is no work, however far apart their names say they are."""
    a, b, _ = pair
    for root in (a, b):
        (root / "commitlog" / f"{0:020d}").rename(root / "commitlog" / f"{1 << 62:020d}")
    code, ranges, messages, _ = compared(a, b)
    assert (code, messages) == (0, [])
    assert {state for state, _, _ in ranges} == {"equal"}
