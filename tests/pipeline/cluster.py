"""Run as a program, with a master, a store and a marker file: what executors of their own answer, as JSON."""

from __future__ import annotations

import json
import sys

from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.runner import run_each
from rmqtool.pipeline.session import make_session
from rmqtool.pipeline.source import RocketMQSource
from rmqtool.pipeline.verify import verify
from tests.pipeline.failing import work


def main(master: str, store: str, marker: str) -> None:
    """Kills an executor on the way."""
    spark = make_session(master, {"spark.executor.cores": "1", "spark.cores.max": "2"})
    ((_, results),) = run_each(spark, {"a": ["x", f"executor:{marker}", "y"]}, work)
    (verdict,) = verify(spark, SourceOptions((store,)))
    spark.dataSource.register(RocketMQSource)
    count = (
        spark.read.format("rocketmq").option("part_bytes", "8192").schema("topic string").load(store).count()
    )
    spark.stop()
    told = {"results": results, "findings": len(verdict.findings), "records": verdict.summary["records"]}
    sys.stdout.write(json.dumps(told | {"count": count}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
