"""The job of the cluster test of mixed devices: a query whose batches are planned.

Run as a script with one JSON argument. It writes what became of the query to the `status` file and
ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import penstock
from penstock.client import Client
from support.spark.pool_job import DEVICES, POLICY, executors, planned_query
from support.spark.sleeping_jobs import wait_until


def main(job: dict[str, Any]) -> None:
    spark = penstock.session(
        job["master"], url=job["url"], token=job["token"], conf=job["conf"], app_name="mixed"
    )
    wait_until(lambda: executors(spark) == job["executors"])
    client, folder = Client(job["url"], job["token"]), Path(job["folder"])
    settings = {DEVICES: "auto", POLICY: "all-gpu"}
    planned = planned_query(spark, client, folder / "planned", "planned", settings)
    Path(job["status"]).write_text(json.dumps(planned))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
