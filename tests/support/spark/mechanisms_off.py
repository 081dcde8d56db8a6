"""Settings without which a run is as Spark alone would have it, but for the commit."""

from __future__ import annotations

PLAIN_BATCHES = {
    "spark.penstock.batch.switches": "false",
    "spark.penstock.batch.hadoopConf": "spark",
    "spark.penstock.batch.watermark": "spark",
    "spark.penstock.eviction": "spark",
    "spark.penstock.windows": "spark",
    "spark.penstock.inline.bytes": "0",
    "spark.penstock.checkpoint.localFiles": "spark",
}
EARLY_ANSWERS = {"spark.penstock.commit.earlyAnswers": "true"}
