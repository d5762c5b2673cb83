"""Refusing a STORE that is a part of one where the answer needs the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import NewerFormatError, UsageError
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.resolve import StoreForm
from rmqtool.store.roots import looks_like_root

if TYPE_CHECKING:
    from rmqtool.store.layout import Store


def require_root(store: Store) -> None:
    """Raises `UsageError` where STORE is a part of a store, with what it is and the root probably meant."""
    if store.form is not StoreForm.STORE:
        raise UsageError(f"{_what(store)}, not a store root; {_meant(store)}")


def require_log(store: Store) -> None:
    """The same for what is answered from the log: a `commitlog` or DLedger directory or a segment will do."""
    whole = store.form in {StoreForm.STORE, StoreForm.COMMITLOG, StoreForm.DLEDGER}
    if not whole and not store.segments and not store.of_kind(FileKind.DLEDGER_DATA):
        raise UsageError(f"{_what(store)}, without its commit log; {_meant(store)}")


def refuse_dledger(store: Store) -> None:
    """Raises `NewerFormatError` where the only log is in DLedger's files."""
    if not store.segments and store.of_kind(FileKind.DLEDGER_DATA):
        raise NewerFormatError(f"{store.given}: DLedger data files are not decoded by this release")


def _what(store: Store) -> str:
    shown = escape_name(str(store.given))
    if store.form is StoreForm.COMMITLOG:
        return f"{shown} is a commitlog directory"
    if store.form is StoreForm.DLEDGER:
        return f"{shown} is a DLedger directory"
    kinds = {file.kind for file in store.files} - {FileKind.UNKNOWN}
    kind = f" ({next(iter(kinds))})" if len(kinds) == 1 else ""
    what = "a file" if store.form is StoreForm.FILE else "a directory"
    return f"{shown} is {what}{kind} that is a part of a store"


def _meant(store: Store) -> str:
    root = str(store.root)
    if store.scope and looks_like_root(root):
        return f"the store root is probably {escape_name(root)}"
    return "give the directory that holds commitlog/, consumequeue/ and config/"
