"""Faults seeded into the project, each a patch beside this file, and whether the fast run catches them.

A patch is a unified diff against `rmqtool/` or `formats/` behind a few header lines: `Fault` (what it does to
an operator), `Room`, `Command` (those of the command line that it hits, or none) and `Caught-by` (a test of
the fast run; more than one line is fine). `python -m tests.faults` runs them.
"""
