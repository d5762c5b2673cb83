"""Topics that are kept in memory only: their messages, their queues, and what they share with topics on disk.

`MemoryLog` keeps and evicts, `MemoryReader` reads; `RoutedAppender` and `RoutedReader` choose by the topic.
"""
