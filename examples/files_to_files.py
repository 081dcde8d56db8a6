"""An existing Spark job, from files to files, whose commits no longer stop it. No server.

    python examples/files_to_files.py INPUT OUTPUT CHECKPOINT

The query is ordinary PySpark and knows nothing of Penstock. What is added is the jar and a few
settings: `penstock.attach(builder)` sets them, or spark-submit does,

    spark-submit --jars "$(penstock doctor --jar)" \\
        --conf spark.plugins=penstock.PenstockPlugin \\
        --conf spark.sql.extensions=penstock.PenstockExtensions \\
        --conf spark.sql.streaming.checkpointFileManagerClass=\\
penstock.checkpoint.PenstockFileManager \\
        --conf spark.sql.streaming.stateStore.providerClass=\\
org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider \\
        JOB.py

Offsets, commit log and state of a batch are written to the checkpoint while the next batch is
computed, in an order that every crash leaves whole; and Spark without the jar goes on from the same
checkpoint.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock

ORDERS = "customer bigint, amount double, at timestamp"


def per_minute(orders: DataFrame) -> DataFrame:
    """Orders and turnover of each customer in each minute, once the minute is over."""
    return (
        orders.withWatermark("at", "10 seconds")
        .groupBy(f.window("at", "1 minute"), "customer")
        .agg(f.count("*").alias("orders"), f.sum("amount").alias("turnover"))
        .select("window.start", "customer", "orders", "turnover")
    )


def main(given: str, made: str, checkpoint: str) -> None:
    builder = SparkSession.builder.appName("orders per minute").master("local[2]")
    spark = penstock.attach(builder).getOrCreate()
    penstock.verify(spark)
    orders = spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1).json(given)
    query = (
        per_minute(orders)
        .writeStream.format("parquet")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(made)
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
