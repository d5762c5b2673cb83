"""Is a plan right? Its result is checked by what did not plan it: `check`, `recovery`, and the records."""

from __future__ import annotations
