"""Stores that are no directory of this machine: whatever fsspec lists and reads in ranges."""
