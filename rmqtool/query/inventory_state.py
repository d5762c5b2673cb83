"""The state of a store beside its data: release, sizes, lock, abort, checkpoint, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.checkpoint import CHECKPOINT_SIZE, Abort, BrokerIdentity, EpochFile, parse_checkpoint
from formats.errors import FormatError
from rmqtool.errors import RmqtoolError
from rmqtool.store import lock
from rmqtool.store.config_json import ParseState, load_config_pair, load_json_config
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.releases import describe
from rmqtool.store.resolve import StoreForm
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_JSON_KINDS = (
    FileKind.CONFIG,
    FileKind.CONFIG_BAK,
    FileKind.CONFIG_TMP,
    FileKind.TIMERMETRICS,
    FileKind.COMPACTION_POSITION,
)


def state_of(store: Store) -> Row:
    """The facts that occur once."""
    state = lock.probe(store.lock_path)
    return {
        "store": escape_name(str(store.given)),
        "root": escape_name(str(store.root)),
        "form": store.form.value,
        "form_detail": store.how,
        "roots": [escape_name(str(root)) for root in store.roots],
        "release": _release(store),
        "sizes": [_size(store, kind) for kind in store.sizes],
        "lock": {"held": state.held, "pid": state.pid, "reason": state.reason},
        "abort": _abort(store),
        "checkpoint": _checkpoint(store),
        "epoch": [_epoch(file) for file in store.of_kind(FileKind.EPOCH)],
        "broker_identity": [_identity(file) for file in store.of_kind(FileKind.BROKER_IDENTITY)],
        "notes": list(store.notes),
    }


def _release(store: Store) -> Row:
    release = store.release
    return {
        "guess": release.guess,
        "first": release.first,
        "last": release.last,
        "mixed": release.mixed,
        "source": "inferred",
        "evidence": [
            {
                "fact": one.fact,
                "path": one.path,
                "releases": describe(one.releases),
                "weight": one.weight.name.lower(),
                "agrees": one.agrees,
            }
            for one in release.evidence
        ],
    }


def _size(store: Store, kind: FileKind) -> Row:
    size = store.sizes[kind]
    return {
        "kind": kind.value,
        "size": size.value,
        "units": size.units,
        "source": size.source.value,
        "others": list(size.others),
        "detail": size.detail,
    }


def small_content(file: StoreFile) -> bytes | str:
    """The content of a small file, or why it cannot be read."""
    try:
        return read_whole(file)
    except RmqtoolError as error:
        return str(error)


def _abort(store: Store) -> Row:
    file = next(iter(store.of_kind(FileKind.ABORT)), None)
    if file is None:
        # Of a commitlog directory alone nobody can say: the file lies beside it.
        return {"exists": False if store.form is StoreForm.STORE else None, "pid": None}
    reported: Row = {"exists": True, "pid": None, "modified_timestamp": file.mtime_ns // 1_000_000}
    content = small_content(file)
    if isinstance(content, str):
        return reported | {"error": content}
    try:
        return reported | {"pid": Abort.parse(content)}
    except FormatError as error:
        return reported | {"error": str(error), "content_hex": content[:64].hex()}


def _checkpoint(store: Store) -> Row | None:
    file = next(iter(store.of_kind(FileKind.CHECKPOINT)), None)
    if file is None:
        return None
    content = small_content(file)
    if isinstance(content, str):
        return {"path": file.display_path, "size": file.size, "error": content}
    fields = parse_checkpoint(content)
    names = [name for name in fields if name[0] != "_" and name != "reserved"]
    reported: Row = {
        "path": file.display_path,
        "size": file.size,
        **{name: int(fields[name]) for name in names},
    }
    if file.size != CHECKPOINT_SIZE:
        reported["note"] = f"{file.size} bytes instead of {CHECKPOINT_SIZE}"
    return reported


def _epoch(file: StoreFile) -> Row:
    content = small_content(file)
    if isinstance(content, str):
        return {"path": file.display_path, "error": content}
    try:
        parsed = EpochFile.parse(content)
    except FormatError as error:
        return {"path": file.display_path, "error": str(error)}
    entries = [{"epoch": one.epoch, "start_offset": one.start_offset} for one in parsed.entries]
    return {"path": file.display_path, "valid": parsed.is_valid, "entries": entries}


def _identity(file: StoreFile) -> Row:
    content = small_content(file)
    if isinstance(content, str):
        return {"path": file.display_path, "error": content}
    try:
        return {"path": file.display_path, **BrokerIdentity.parse(content)._asdict()}
    except FormatError as error:
        return {"path": file.display_path, "error": str(error)}


def config_rows(store: Store) -> list[Row]:
    """How far each JSON file is JSON, how much is in it, and which of file and `.bak` a broker would load."""
    rows = []
    for kind in _JSON_KINDS:
        for file in store.of_kind(kind):
            parsed = load_json_config(file.location)
            rows.append(
                {
                    "type": "config",
                    "path": file.display_path,
                    "size": file.size,
                    "state": parsed.state.value,
                    "detail": parsed.detail,
                    "entries": _entries(parsed.data),
                    "loads": _loads(file, kind, parsed.state),
                }
            )
    return sorted(rows, key=lambda row: str(row["path"]))


def _loads(file: StoreFile, kind: FileKind, state: ParseState) -> str | None:
    """`primary`, `bak` or `empty`; None for files whose load does not follow that rule."""
    if kind is not FileKind.CONFIG:
        return None
    return "primary" if state.has_data else load_config_pair(file.location).chosen


def _entries(data: Any) -> dict[str, int]:
    """Table → number of its entries."""
    if not isinstance(data, dict):
        return {}
    tables = {str(name): len(value) for name, value in data.items() if isinstance(value, dict)}
    return {name: count for name, count in tables.items() if name != "dataVersion"}
