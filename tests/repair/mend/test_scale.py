"""Many holes and many queues: the result is right, whatever their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixtures.many import Many
from rmqtool.check.verify import Reading, Verification
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.repair.mend.laws import kept, mend

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = "5.3.3"


def test_seven_hundred_bad_bodies_in_one_queue(tmp_path: Path) -> None:
    many = Many(1, 1, 1500, queue_file=40_000)
    root = many.write(tmp_path / "store")
    many.spoil(root, np.arange(700) * 2 + 1)
    target = tmp_path / "mended"
    plan = mend(root, RELEASE, target, many.settings)
    assert (plan.lost.messages, plan.notes) == (700, ())
    store = Store.open(target, config=config_of(many.settings))
    assert list(Verification(store, Reading(1)).findings()) == []
    assert kept(target, RELEASE, many.settings).changes == ()
