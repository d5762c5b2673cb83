"""JSON Schemas (draft 2020-12) of what `--format json` and the files of rmqtool hold."""
