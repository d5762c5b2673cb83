"""The command line: one module a command, which parses, calls one function and renders.

A command module has a function `command` and nothing heavy at its top level: typer and this package only;
what does the work is imported inside the function. `commands.COMMANDS` lists it with its one-line help.

    @verb(examples=["rmqtool dump /data/store --topic 'Order*' --limit 20"], formats=(*FORMATS, "raw"))
    def command(
        path: PathArgument = None,
        *,
        store: StoreOptions,
        read: ReadOptions,
        filters: FilterOptions,
        bodies: BodyOptions,
        output: OutputOptions,
    ) -> ExitCode:
        context = Context(output)                                # form, colour, zone, streams
        target = resolve_store(path, store)                      # -, $RMQTOOL_STORE, storePathRootDir
        wanted = filters.build(context.zone)                     # a MessageFilter
        with context.rows("rmqtool.dump/1", COLUMNS) as rows:    # table, NDJSON, JSON or CSV
            rows.covered = lambda: progress_so_far               # the summary, should the user interrupt
            rows.write_columns(names, lists, omit_null={"topic_hex"})
            rows.write_rows([{"type": "gap", ...}])
            rows.finish({"messages": 413, "complete": True})     # schema is added
        return ExitCode.OK

`context.console.note/warn` speak on stderr, `context.progress(label, total)` shows a bar, `context.page()`
takes headings, facts and small tables, `context.document(schema, content)` one JSON object, `context.out` raw
bytes. A command catches nothing: errors go up to `main.run`, the one boundary, which makes them one line and
an exit code. A closed pipe and an interrupt are settled there and in `Rows` too.
"""
