"""Tests of the mend that keeps every intact record."""
