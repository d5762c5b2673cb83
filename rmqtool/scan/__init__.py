"""Commit log bytes to the record table, queue and index bytes to tables of units and items."""

from __future__ import annotations
