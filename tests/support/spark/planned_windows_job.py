"""The job of a driver that is killed: a query over windows of the log whose batches are planned.

It asks the admission that it is given, takes one commit in each batch, and writes the answer of
every batch to a file of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import penstock
from support.spark import plain_windows


def main(job: dict[str, Any]) -> None:
    spark = penstock.session(
        job["master"],
        url=job["url"],
        token=job["token"],
        conf={**job["conf"], **plain_windows.NO_DATA},
    )
    answers = Path(job["answers"])

    def keep(rows: DataFrame, batch: int) -> None:
        answer = sorted((tuple(row) for row in rows.collect()), key=repr)
        written = answers / f".{batch}"
        written.write_text(json.dumps(answer))
        written.rename(answers / f"{batch}.json")

    reader = spark.readStream.format("penstock").options(**job["options"])
    query = (
        plain_windows.sums(reader.load(job["stream"]))
        .writeStream.outputMode("update")
        .option("checkpointLocation", job["checkpoint"])
        .foreachBatch(keep)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
