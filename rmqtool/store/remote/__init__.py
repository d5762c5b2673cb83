"""Stores that are not directories of this machine: whatever fsspec lists and reads in ranges."""
