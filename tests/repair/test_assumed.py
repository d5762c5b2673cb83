"""What a plan says about sizes of files that nothing gave it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from fixtures.stores import healthy_store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def test_a_default_size_is_said(tmp_path: Path) -> None:
    """A broker refuses queue files of another size than it is set to (`MappedFileQueue#doLoad`)."""
    store = healthy_store().write(tmp_path / "store")
    config = tmp_path / "broker.conf"
    config.write_text("mappedFileSizeConsumeQueue=300000\n")

    def notes(*asked: object) -> list[str]:
        plan = json.loads(rmq(*asked, store.root, "--json").stdout)["summary"]
        return [one for one in plan["notes"] if "mappedFileSizeConsumeQueue" in one]

    commands = ("rebuild", "--what", "cq"), ("recover",)
    assert not any(notes(*command) for command in commands)
    shutil.rmtree(store.root / "consumequeue")
    for command in commands:
        assert len(notes(*command)) == 1
    assert not notes(*commands[0], "--store-config", config)
