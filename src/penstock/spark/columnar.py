"""`penstock.columnar`: a frame's columns through a pipeline of one's own, in Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from penstock.devices.pipeline import Pipeline
from penstock.devices.worker import pipeline_rows
from penstock.spark.installed import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def columnar(df: DataFrame, pipeline: Pipeline, schema: str) -> DataFrame:
    """The rows that a pipeline makes of a frame's, with the columns of `schema`, Spark's DDL.

    Columns of the frame are known by their places. Each record batch goes through the pipeline by
    itself, so that an aggregate yields partial results. Directly over a stream of the log batches
    are the log's own and are never made into rows, unless `spark.penstock.devices` is `spark` or
    `panes`; elsewhere they are those of Spark's `mapInArrow`, which this is otherwise.
    """
    need_pyspark()
    return df.mapInArrow(_function(msgspec.json.encode(pipeline).decode()), schema)


def _function(text: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that workers run; the pipeline travels with it as its text."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pipeline_rows(text, batches)

    return run
