"""The archive of a data folder and a checkpoint that tests/spark/test_earlier_checkpoint.py opens.

Run with a checkout of the earlier version, its jar built, its `src` and `tests` on PYTHONPATH:
`python write_earlier.py protocol_N_checkpoint.tar.gz`. Server and driver are killed after three
batches of a count by key, so that nothing is closed in good order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pyarrow as pa

import penstock
from penstock.client import Client
from support.servers.processes import QUICK_START, ServerProcess

BATCHES = [range(batch, batch + 4) for batch in range(3)]


def run_query(url: str, token: str, checkpoint: str) -> None:
    """Append and count batch after batch, say so, and wait to be killed."""
    spark = penstock.session("local[2]", url=url, token=token, conf=QUICK_START)
    client = Client(url, token)
    client.create("given", pa.schema([("n", pa.int64())]))
    query = (
        spark.readStream.format("penstock").load("given").groupBy("n").count()
        .writeStream.format("penstock").outputMode("update")
        .option("checkpointLocation", checkpoint)
        .start("made")
    )  # fmt: skip
    for numbers in BATCHES:
        client.append("given", pa.table({"n": pa.array(numbers, pa.int64())}))
        query.processAllAvailable()
    print("counted", flush=True)
    signal.pause()


def write_archive(archive: Path) -> None:
    """Run the query in a process of its own, kill it and the server, and pack what they leave."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = ServerProcess(folder / "data").start()
        driver = subprocess.Popen(
            [sys.executable, __file__, server.url, server.token, str(folder / "checkpoint")],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert driver.stdout is not None
        assert any(line == "counted\n" for line in driver.stdout), "the driver has ended"
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        server.kill()
        (folder / "data" / "server.out").unlink()
        with tarfile.open(archive, "w:gz") as packed:
            for part in ("data", "checkpoint"):
                packed.add(folder / part, part)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_archive(Path(sys.argv[1]))
    else:
        run_query(*sys.argv[1:])
