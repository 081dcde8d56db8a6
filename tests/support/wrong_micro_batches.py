"""The floor suite's micro-batches with a mistake in them: every count is of two keys together."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.experiment.worker import serve
from penstock_lab.measure import micro_batches


def counted(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy((f.col("value") % (micro_batches.KEYS // 2)).alias("key")).count()


if __name__ == "__main__":
    micro_batches.counted = counted
    serve(micro_batches.main)
