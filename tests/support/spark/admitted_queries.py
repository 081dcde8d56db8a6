"""Queries with a deadline, and the admission that a test plays for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from support.servers.played_admission import PlayedAdmission
from support.servers.processes import ServerProcess, wait_until


def terms(admission: PlayedAdmission, server: ServerProcess, **more: str) -> dict[str, str]:
    """Options of a source of a query with a deadline that asks this admission."""
    return {"deadline": "2s", "url": admission.url, "token": server.token, **more}


def files(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("n bigint").options(**options).json(str(folder))


def put_file(folder: Path, name: str, *rows: int) -> None:
    folder.mkdir(exist_ok=True)
    written = folder / f".{name}"
    written.write_text("".join(json.dumps({"n": n}) + "\n" for n in rows))
    written.rename(folder / f"{name}.json")


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def started(frame: DataFrame, checkpoint: str, table: str, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("memory").queryName(table)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", checkpoint).start()


def started_into(
    frame: DataFrame, checkpoint: str, rows: list[int], **trigger: Any
) -> StreamingQuery:
    """The same into a list, which a query may go on to fill when it is started again."""
    writer = frame.writeStream.foreachBatch(
        lambda batch, _: rows.extend(row["n"] for row in batch.select("n").collect())
    )
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", checkpoint).start()


def rows_in(spark: SparkSession, table: str) -> list[int]:
    return sorted(row["n"] for row in spark.table(table).select("n").collect())


def batches(query: StreamingQuery) -> list[dict[str, Any]]:
    """The batches with data that have ended."""
    progress = [json.loads(each.json) for each in query.recentProgress]
    return [each for each in progress if each["numInputRows"]]


def wait_for_questions(admission: PlayedAdmission, query: StreamingQuery, count: int) -> None:
    seen = len(admission.asked_for(query.id))
    wait_until(
        f"{count} more questions were asked",
        lambda: len(admission.asked_for(query.id)) >= seen + count or query.exception() is not None,
    )
    assert query.exception() is None


def waiting_offer(
    admission: PlayedAdmission, query: StreamingQuery, counted: str, count: int
) -> dict[str, Any]:
    """The last offer of a query's first source, once it has so many of what is counted."""

    def offer() -> dict[str, Any]:
        asked = admission.asked_for(query.id)
        return dict(asked[-1]["inputs"][0]["offer"]) if asked else {}

    wait_until(f"{count} {counted} are offered", lambda: offer().get(counted, 0) >= count)
    return offer()


def reports_sent(admission: PlayedAdmission, query: StreamingQuery) -> list[dict[str, Any]]:
    """The reports of batches with data in all questions of a query."""
    asked = admission.asked_for(query.id)
    return [report for each in asked for report in each["reports"] if report["has_data"]]
