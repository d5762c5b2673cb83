"""A store directory as it lies on disk, read only.

`layout` finds and classifies every path, `segments` makes one address space of the commit log files,
`bytes` opens them, `geometry` and `release` infer what no file says, `config` reads settings, `lock` asks
for a running broker. Nothing heavy is imported here; import from the modules.
"""
