"""Files of `config/` that are there and give no table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.store.config_json import ParseState
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def config_lost(store: Store, *names: str) -> list[Row]:
    """A row of `not_covered` for each of these files that gives no table.

    What comes from the `.bak` of such a file is what a broker would load, and may be older than what is lost.
    """
    found = []
    for name in names:
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
