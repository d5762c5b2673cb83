"""Derived files from the records of the log: consume queues of all kinds and index files, byte for byte.

What is built is what a broker of a release writes when it starts on a log without derived files. The room
knows nothing of plans: it reads records and writes files below a directory that its caller names.
"""

from __future__ import annotations
