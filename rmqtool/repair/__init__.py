"""Changes to a store: planned as data, applied under a journal, undone from it."""

from __future__ import annotations
