"""The two queries of the demo, each once for Spark and once for the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock_lab.demo.oracle import Question

CATEGORIES = 10
STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


@dataclass(frozen=True)
class Step:
    """A query from one stream to another, and the question it is checked against."""

    reads: str
    ddl: str
    """Columns of the stream it writes."""
    question: Question

    @property
    def name(self) -> str:
        """Of the query, and of the stream it writes."""
        return self.question.name


AUCTION_TOTALS = Step(
    "bids",
    "auction bigint, bids bigint, total bigint, highest bigint, sent_at timestamp",
    Question(
        "auction_totals",
        key="auction",
        key_name="auction",
        answers=(
            "count(*)::bigint as bids, sum(price)::bigint as total, max(price) as highest, "
            "max(sent_at) as sent_at"
        ),
    ),
)
CATEGORY_LEADERS = Step(
    "auction_totals",
    "category bigint, highest bigint, sent_at timestamp",
    Question(
        "category_leaders",
        key=f"auction % {CATEGORIES}",
        key_name="category",
        answers="max(highest) as highest, max(sent_at) as sent_at",
    ),
)
STEPS = (AUCTION_TOTALS, CATEGORY_LEADERS)

LEADERS_FROM_BIDS = Question(
    "category_leaders from bids",
    key=f"auction % {CATEGORIES}",
    key_name="category",
    answers="max(price) as highest, max(sent_at) as sent_at",
)
"""What the second query's final view must be, whatever the first one did in between."""


def start(spark: SparkSession, step: Step, checkpoints: Path) -> StreamingQuery:
    """Start the query with stock Spark operators; both streams must exist."""
    rows = spark.readStream.format("penstock").load(step.reads)
    keyed, answers = _spark(step)
    return (
        rows.groupBy(keyed)
        .agg(*answers)
        .writeStream.format("penstock")
        .outputMode("update")
        .queryName(step.name)
        .option("checkpointLocation", str(checkpoints / step.name))
        .start(step.name)
    )


def _spark(step: Step) -> tuple[Column, list[Column]]:
    if step is AUCTION_TOTALS:
        return f.col("auction"), [
            f.count("*").alias("bids"),
            f.sum("price").alias("total"),
            f.max("price").alias("highest"),
            f.max("sent_at").alias("sent_at"),
        ]
    return (f.col("auction") % CATEGORIES).alias("category"), [
        f.max("highest").alias("highest"),
        f.max("sent_at").alias("sent_at"),
    ]
