"""Makes `format("rocketmq")` known to Spark, which looks for `DefaultSource` in modules `pyspark_*`."""

from __future__ import annotations

from rmqtool.pipeline.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
