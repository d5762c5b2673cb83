"""What a file of a store is, by where it lies.

`role_of(directory)` knows the tree that `StorePathConfigHelper`, `BrokerPathConfigHelper`,
`CompactionStore` and the RocksDB stores lay out; a `Role` then places single names. Content is looked at
elsewhere (`sniff`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from rmqtool.store.names import LONG_MAX, parse_base_offset, parse_queue_id

if TYPE_CHECKING:
    from collections.abc import Callable


class FileKind(StrEnum):
    """Every kind of file that a store directory can hold; `UNKNOWN` is everything else."""

    COMMITLOG = "commitlog"
    CONSUMEQUEUE = "consumequeue"
    CONSUMEQUEUE_EXT = "consumequeue_ext"
    BATCHCONSUMEQUEUE = "batchconsumequeue"
    INDEX = "index"
    CHECKPOINT = "checkpoint"
    ABORT = "abort"
    ABORT_BAK = "abort_bak"
    LOCK = "lock"
    CONFIG = "config"
    CONFIG_BAK = "config_bak"
    CONFIG_TMP = "config_tmp"
    TIMERCHECK = "timercheck"
    TIMERMETRICS = "timermetrics"
    TIMERWHEEL = "timerwheel"
    TIMERLOG = "timerlog"
    COMPACTION_LOG = "compaction_log"
    COMPACTION_CQ = "compaction_cq"
    COMPACTION_POSITION = "compaction_position"
    EPOCH = "epoch"
    BROKER_IDENTITY = "broker_identity"
    DLEDGER_DATA = "dledger_data"
    DLEDGER_INDEX = "dledger_index"
    DLEDGER_TEXT = "dledger_text"
    TRANSACTION_STATE = "transaction_state"
    ROCKSDB = "rocksdb"
    REPLAY = "replay"
    """made by `export`, never found in a store"""
    UNKNOWN = "unknown"


QUEUE_KINDS: Final = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE_EXT)
"""Kinds whose files lie in `<kind>/<topic>/<queueId>/`."""

COMPACTION_KINDS: Final = (FileKind.COMPACTION_LOG, FileKind.COMPACTION_CQ)
"""Kinds whose files lie in `compaction/`, by topic and queue."""

CONFIG_NAMES: Final = frozenset(
    {
        "topics.json",
        "subscriptionGroup.json",
        "consumerOffset.json",
        "lmqConsumerOffset.json",
        "consumerFilter.json",
        "delayOffset.json",
        "consumerOrderInfo.json",
        "topicQueueMapping.json",
        "messageRequestMode.json",
        "transactionMetrics",
    }
)

ROOT_FILES: Final = {
    "checkpoint": FileKind.CHECKPOINT,
    "abort": FileKind.ABORT,
    "abort.bak": FileKind.ABORT_BAK,
    "lock": FileKind.LOCK,
    "timerwheel": FileKind.TIMERWHEEL,
    "epochFileCheckpoint": FileKind.EPOCH,
    "epochFileCheckpoint.bak": FileKind.EPOCH,
    "brokerIdentity": FileKind.BROKER_IDENTITY,
    "brokerIdentity.bak": FileKind.BROKER_IDENTITY,
    "brokerIdentity-temp": FileKind.BROKER_IDENTITY,
}

SALVAGE_REPORT: Final = "rmqtool-salvage.json"
SALVAGE_MAPPING: Final = "rmqtool-salvage-moved.csv"
STATUS_FILE: Final = "rmqtool-status.json"
MEMORY_FILE: Final = "rmqtool-memory.json"
"""in `config`: which topics are kept in memory, as brokers drop what `topics.json` says of it"""
BROADCAST_FILE: Final = "rmqtool-broadcast.json"
_OWN_CONFIG: Final = {
    MEMORY_FILE: "topics that rmqtool keeps in memory",
    BROADCAST_FILE: "how far members of broadcasts in rmqtool's message store are",
}
OWN_FILES: Final = {
    SALVAGE_REPORT: "made by rmqtool salvage",
    SALVAGE_MAPPING: "made by rmqtool salvage",
    STATUS_FILE: "counters of the process that writes the store",
    f".{STATUS_FILE}.tmp": "counters of the process that writes the store",
}
"""what rmqtool puts beside a store, and what it is; brokers pass over it"""

_DLEDGER_FILES: Final = dict.fromkeys(
    ("checkpoint", "checkpoint.bak", "currterm", "currterm.bak"), FileKind.DLEDGER_TEXT
)

_COMPACTION: Final = {"compactionLog": FileKind.COMPACTION_LOG, "compactionCq": FileKind.COMPACTION_CQ}

_ROCKSDB_CONFIG: Final = frozenset({"topics", "subscriptionGroups", "consumerOffsets", "rdb"})

_ROCKSDB_NAME = re.compile(
    r"CURRENT|IDENTITY|LOCK|LOG|LOG\.old\.\d+|MANIFEST-\d+|OPTIONS-\d+(\.dbtmp)?|\d+\.(sst|log|ldb|blob|dbtmp)"
)


ROCKSDB_STORE_TYPE: Final = "defaultRocksDB"
"""`storeType` of brokers with consume queues in RocksDB (`StoreType#STORE_ROCKSDB`)"""


def is_rocksdb_name(name: str) -> bool:
    """Whether RocksDB itself gives files such a name."""
    return _ROCKSDB_NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Placement:
    """What a name means in its directory. `note` says why it is unknown, or what is special about it."""

    kind: FileKind
    base_offset: int | None = None
    note: str | None = None

    def of_size(self, size: int) -> Placement:
        """The same of a file of `size` bytes: unknown where the offsets of some of them are not longs."""
        if self.base_offset is None or self.base_offset + size <= LONG_MAX:
            return self
        return Placement(FileKind.UNKNOWN, note="offsets of its bytes are beyond what a long holds")


@dataclass(frozen=True, slots=True)
class Role:
    """What a directory is for. `numbered` is the kind of its files named by a base offset."""

    numbered: FileKind | None = None
    topic: str | None = None
    queue_id: int | None = None
    state: str | None = None
    everything: FileKind | None = None
    named: dict[str, FileKind] | None = None
    rocksdb: bool = False
    config: bool = False
    root: bool = False
    reason: str = "no file of a store lies here"

    def place(self, name: str) -> Placement:
        """Kind and base offset of the file `name` in this directory."""
        if self.everything is not None:
            return Placement(self.everything)
        if self.numbered is not None:
            return self._place_numbered(self.numbered, name)
        if self.named is not None and name in self.named:
            return Placement(self.named[name])
        if self.config:
            return _place_config(name)
        if self.rocksdb and is_rocksdb_name(name):
            return Placement(FileKind.ROCKSDB)
        ours = OWN_FILES.get(name) if self.root else None
        return Placement(FileKind.UNKNOWN, note=ours or self.reason)

    def _place_numbered(self, kind: FileKind, name: str) -> Placement:
        note = self.state
        if kind in COMPACTION_KINDS and name.endswith(".delete"):
            name, note = name.removesuffix(".delete"), "delete"
        base = parse_base_offset(name)
        if base is None:
            return Placement(FileKind.UNKNOWN, note="the name is not a number")
        return Placement(kind, None if kind is FileKind.INDEX else base, note)


def _place_config(name: str) -> Placement:
    if name == "timercheck":
        return Placement(FileKind.TIMERCHECK)
    if name == "timermetrics":
        return Placement(FileKind.TIMERMETRICS)
    if name in CONFIG_NAMES:
        return Placement(FileKind.CONFIG)
    if (ours := _OWN_CONFIG.get(name.removesuffix(".bak"))) is not None:
        return Placement(FileKind.UNKNOWN, note=ours)
    stem, _, suffix = name.rpartition(".")
    if suffix in ("bak", "tmp") and (stem in CONFIG_NAMES or stem in ("timermetrics", "timercheck")):
        return Placement(FileKind.CONFIG_BAK if suffix == "bak" else FileKind.CONFIG_TMP)
    return Placement(FileKind.UNKNOWN, note="no configuration file of a known release has this name")


ROCKSDB_ROLE: Final = Role(everything=FileKind.ROCKSDB)


def _queue_role(kind: FileKind, below: tuple[str, ...]) -> Role:
    if len(below) == 2:
        # Empty components stand for a queue directory that was copied away and lost its name.
        queue_id = parse_queue_id(below[1])
        if queue_id is None and below[1]:
            return Role(topic=below[0], reason="the name of the queue directory is not a queue number")
        return Role(numbered=kind, topic=below[0] or None, queue_id=queue_id)
    if not below:
        return Role(rocksdb=kind is FileKind.CONSUMEQUEUE, reason="only topic directories belong here")
    if len(below) == 1:
        return Role(topic=below[0], reason="only queue directories belong here")
    return Role(reason="too deep for a queue file")


def _compaction_role(below: tuple[str, ...]) -> Role:
    if not below:
        names = ("position-checkpoint", "position-checkpoint.bak", "position-checkpoint.tmp")
        return Role(named=dict.fromkeys(names, FileKind.COMPACTION_POSITION))
    kind = _COMPACTION.get(below[0])
    if kind is None or len(below) not in (3, 4):
        return Role()
    queue_id = parse_queue_id(below[2])
    state = below[3] if len(below) == 4 else None
    if queue_id is None or state not in (None, "compacting", "replicating"):
        return Role()
    return Role(numbered=kind, topic=below[1], queue_id=queue_id, state=state)


def _dledger_role(below: tuple[str, ...]) -> Role:
    if not below:
        return Role(named=_DLEDGER_FILES)
    if below == ("data",):
        return Role(numbered=FileKind.DLEDGER_DATA)
    if below == ("index",):
        return Role(numbered=FileKind.DLEDGER_INDEX)
    return Role()


def _config_role(below: tuple[str, ...]) -> Role:
    if not below:
        return Role(config=True)
    return ROCKSDB_ROLE if below[0] in _ROCKSDB_CONFIG else Role()


def _transaction_role(below: tuple[str, ...]) -> Role:
    return (
        Role(everything=FileKind.TRANSACTION_STATE)
        if below[:1] in (("statetable",), ("redolog",))
        else Role()
    )


def _numbered_role(kind: FileKind, below: tuple[str, ...]) -> Role:
    return Role(reason="too deep for a numbered file") if below else Role(numbered=kind)


_ROLES: Final[dict[str, Callable[[tuple[str, ...]], Role]]] = {
    "commitlog": partial(_numbered_role, FileKind.COMMITLOG),
    "index": partial(_numbered_role, FileKind.INDEX),
    "timerlog": partial(_numbered_role, FileKind.TIMERLOG),
    **{kind.value: partial(_queue_role, kind) for kind in QUEUE_KINDS},
    "config": _config_role,
    "compaction": _compaction_role,
    "kvStore": lambda _: ROCKSDB_ROLE,
    "transaction": _transaction_role,
}

TOP_DIRECTORIES: Final = frozenset(_ROLES)
"""Names of the directories of a store root, except for those of DLedger (`dledger-<selfId>`)."""


def is_looked_into(directory: tuple[str, ...]) -> bool:
    """Whether a broker looks for files in the directory with these path components, or below it.

    What lies right in a directory of the store root counts, whatever its name.
    """
    top, below = directory[0], directory[1:]
    if top == "compaction" and below:
        return below[0] in _COMPACTION and (len(below) < 3 or role_of(directory).numbered is not None)
    known = top in _ROLES or top.startswith("dledger-")
    return known and (len(below) < 2 or role_of(directory).numbered is not None)


def role_of(directory: tuple[str, ...]) -> Role:
    """What the directory with these path components below the store root is for."""
    if not directory:
        return Role(named=ROOT_FILES, root=True)
    top, below = directory[0], directory[1:]
    if top.startswith("dledger-"):
        return _dledger_role(below)
    role = _ROLES.get(top)
    return Role() if role is None else role(below)
