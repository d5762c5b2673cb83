"""Run as a program, with a master, a store and a directory: what executors of their own answer, as JSON."""

from __future__ import annotations

import json
import sys

from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.runner import run_each
from rmqtool.pipeline.session import make_session
from rmqtool.pipeline.source import RocketMQSource
from rmqtool.pipeline.verify import verify
from tests.helpers import rmq
from tests.pipeline.failing import work

SETTINGS = {"spark.executor.cores": "1", "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2"}
JOINS = (("broadcast", "scan"), ("shuffle", "index"), ("shuffle", "scan"))
"""of `query-key`, and where keys are looked up"""


def main(master: str, store: str, place: str) -> None:
    """Kills an executor on the way; makes `marker` and `lake` in the directory `place`."""
    marker = f"{place}/marker"
    spark = make_session(master, SETTINGS)
    ((_, results),) = run_each(spark, {"a": ["x", f"executor:{marker}", "y"]}, work)
    (verdict,) = verify(spark, SourceOptions((store,)))
    spark.dataSource.register(RocketMQSource)
    count = (
        spark.read.format("rocketmq").option("part_bytes", "8192").schema("topic string").load(store).count()
    )
    asking = ("pipeline", "query-key", store, "--keys-file", f"{place}/keys.txt", "--format", "ndjson")
    keys = [rmq(*asking, "--join", join, "--source", source).stdout for join, source in JOINS]
    stream = rmq("pipeline", "stream", store, "--to", f"{place}/lake", "--once", "--json")
    written = spark.read.parquet(f"{place}/lake").count()
    spark.stop()
    reported = {"results": results, "findings": len(verdict.findings), "records": verdict.summary["records"]}
    reported |= {"count": count, "written": written, "stream": [stream.exit_code, stream.stderr]}
    sys.stdout.write(json.dumps(reported | {"keys": keys}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
