"""Tests of the repair that keeps every intact record."""
