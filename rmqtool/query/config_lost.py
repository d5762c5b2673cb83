"""Tables of `config/` that are there and cannot be read: damaged files, and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.store.config_json import ParseState
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.rocksdb import database_of_table

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def config_lost(store: Store, *names: str) -> list[Row]:
    """A row of `not_covered` for each of these files that gives no table, or whose table lies in RocksDB.

    What comes from the `.bak` of such a file is what a broker would load, and may be older than what is lost.
    """
    found = []
    for name in names:
        database = database_of_table(store, name)
        if database is not None:
            found.append(unreadable(database, f"{name} is a table in RocksDB, which is not decoded"))
        pair = store.config_pair(name)
        for path, parsed in ((f"config/{name}", pair.primary), (f"config/{name}.bak", pair.bak)):
            used = parsed.state is ParseState.MISSING or parsed.state.has_data
            if used or (parsed is pair.bak and pair.chosen == "primary"):
                continue
            reason = Incomplete.UNREADABLE if parsed.state is ParseState.UNREADABLE else Incomplete.DAMAGE
            instead = f"; {name}.bak is used" if pair.chosen == "bak" else ""
            error = f"{parsed.detail or 'is empty'}{instead}"
            found.append({"path": path, "reason": reason.value, "error": error})
    return found
