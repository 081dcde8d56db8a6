"""`penstock.columnar`: a frame's columns through a pipeline of one's own, in Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from penstock.devices.pipeline import Pipeline
from penstock.devices.result_columns import result_columns
from penstock.devices.worker import pipeline_rows
from penstock.spark.installed import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def columnar(
    df: DataFrame, pipeline: Pipeline, schema: str | StructType | None = None
) -> DataFrame:
    """The rows that a pipeline makes of a frame's, with the columns of `schema`, Spark's DDL or
    type; without it, with those that the steps tell.

    Columns of the frame are known by their places. Those that pass through keep name and type, what
    is computed is called `c` and its place; BadCall where a type cannot be told, or two columns
    would have one name. Each record batch goes through the pipeline by itself, so that an aggregate
    yields partial results. Directly over a stream of the log batches are the log's own and are
    never made into rows, unless `spark.penstock.devices` is `spark` or `panes`; elsewhere they are
    those of Spark's `mapInArrow`, which this is otherwise. Steps for a GPU that cannot be had run
    on the CPU, which each worker logs once for each cause.
    """
    need_pyspark()
    made = _result_type(df, pipeline) if schema is None else schema
    return df.mapInArrow(_function(msgspec.json.encode(pipeline).decode()), made)


def _result_type(df: DataFrame, pipeline: Pipeline) -> StructType:
    """The columns of the result, from those of the frame and the steps."""
    from pyspark.sql.types import DataType, StructField, StructType

    fields = df.schema.fields
    return StructType(
        [
            StructField(
                column.name,
                DataType.fromDDL(column.type)
                if isinstance(column.type, str)
                else fields[column.type].dataType,
            )
            for column in result_columns(pipeline, df.columns)
        ]
    )


def _function(text: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that workers run; the pipeline travels with it as its text."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pipeline_rows(text, batches)

    return run
