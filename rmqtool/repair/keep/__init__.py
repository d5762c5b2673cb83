"""Mending a store without losing an intact record (policy keep): what becomes of every range that is none."""

from __future__ import annotations
