"""RocketMQ's message store to read and to write: opened, appended to, flushed, dispatched, read, closed.

The rules are those of `rmqtool.broker`, on files that are written; what is here is what a process needs
around them: threads, locks, descriptors.
"""
