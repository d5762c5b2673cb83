"""`DataFrame.mapInArrow` without pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    Mapping = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: Mapping, schema: StructType) -> DataFrame:
    """What `frame.mapInArrow(function, schema)` is.

    That one refuses to be called where pandas is not installed, although Arrow batches reach the function and
    leave it without pandas; so this is put together from the parts that it is made of.
    """
    from pyspark.sql import DataFrame as Frame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    name = type(function).__name__
    udf = UserDefinedFunction(function, schema, name=name, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column: Any = udf(*[frame[one] for one in frame.columns])
    return Frame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: SLF001
