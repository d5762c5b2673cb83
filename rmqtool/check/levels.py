"""How much of a store a verification looks at, and what it then says that it left out."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Level(StrEnum):
    """Levels of `verify`, each with all of the one before."""

    QUICK = "quick"
    """layout, sizes, first record of every segment, frames of the last three segments, last file of each
    queue, index headers, checkpoint and configuration"""
    DEFAULT = "default"
    """every record, unit and index item, each against the others"""
    DEEP = "deep"
    """also compressed bodies, properties as Java decodes them, and the messages inside batches"""


class Phase(IntEnum):
    """What a verification is at, in order; an interrupt leaves this and all later ones uncovered."""

    LAYOUT = 0
    LOG = 1
    QUEUES = 2
    INDEX = 3
    COMPACTION = 4
    STATE = 5
    DONE = 6


PHASE_PATHS = {
    Phase.LOG: "commitlog",
    Phase.QUEUES: "consumequeue",
    Phase.INDEX: "index",
    Phase.COMPACTION: "compaction",
    Phase.STATE: "config",
}
"""what of a store a phase is about"""

_CONTENTS = ("contents of compressed bodies", "messages inside batches", "properties given twice")

NOT_LOOKED_AT: dict[Level, tuple[str, ...]] = {
    Level.QUICK: (
        "records behind the first of every segment but the last three",
        "bodies (CRC), topics, properties and times of records",
        "all files of a queue but its last",
        "records against consume queue entries and index, and entries against records",
        "slots, entries and chains of index files",
        *_CONTENTS,
    ),
    Level.DEFAULT: _CONTENTS,
    Level.DEEP: (),
}
"""what a level leaves out, for the summary"""
