"""A checkpoint in S3, with Hadoop's own client and Spark's own file manager for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.testing.ports import free_port
from support import maven
from support.servers.processes import START_S, DriverProcess, ServerProcess, wait_until
from support.sources import ROOT
from support.spark.outside_jars import DOES_NOT_RUN
from support.spark.s3_job import BUCKET

SDK = "2.35.4"
SDK_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol"),
    *("aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi"),
    *("http-auth", "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi"),
    *("http-client-spi", "identity-spi", "json-utils", "metrics-spi", "netty-nio-client"),
    *("profiles", "protocol-core", "regions", "retries", "retries-spi", "s3"),
    *("s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core", "utils", "utils-lite"),
)
JARS = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    # None was published for 4.3; this class is the same.
    "org.apache.spark:spark-hadoop-cloud_2.13:4.1.1",
    *(f"software.amazon.awssdk:{module}:{SDK}" for module in SDK_MODULES),
    "software.amazon.eventstream:eventstream:1.0.1",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.reactivestreams:reactive-streams:1.0.4",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "commons-logging:commons-logging:1.2",
)
ROWS = 10


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The address of an S3 server of its own, with one bucket."""
    program = shutil.which("moto_server") or shutil.which(ROOT / "build/s3/bin/moto_server")
    if program is None:
        pytest.skip("skipped, because there is no moto_server here: pip install 'moto[s3,server]'")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with (tmp_path / "s3.log").open("wb") as out:
        command = [program, "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_until("the S3 server has made a bucket", lambda: _has_made_bucket(address))
        yield address
    finally:
        server.terminate()
        server.wait(START_S)


def _has_made_bucket(address: str) -> bool:
    request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
    # Any signature will do there, but one must be given.
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/a")
    try:
        with urllib.request.urlopen(request) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_query_keeps_its_checkpoint_in_s3_across_a_restart(tmp_path: Path, endpoint: str) -> None:
    try:
        jars = maven.jars(*JARS)
    except maven.CannotFetch as reason:
        pytest.skip(f"skipped, because {reason}")
    (tmp_path / "input").mkdir()
    for place, name in enumerate(("input/0.parquet", "input/1.parquet", "later.parquet")):
        # Half of each file is in the one before it too: with its state lost, that comes twice.
        numbers = range(place * ROWS // 2, place * ROWS // 2 + ROWS)
        pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), tmp_path / name)
        # Spark takes the files in the order of these times.
        os.utime(tmp_path / name, (1_700_000_000 + place, 1_700_000_000 + place))
    driver = DriverProcess(
        ServerProcess(tmp_path / "no-server"),
        tmp_path,
        script="s3_job.py",
        args={"jars": [str(jar) for jar in jars], "endpoint": endpoint},
    )
    code = driver.wait(START_S)
    if code == DOES_NOT_RUN:
        misfit = driver.said().splitlines()[-1]
        pytest.skip(f"skipped, because Hadoop's client for S3 does not run here: {misfit}")
    assert code == 0, driver.said()[-6000:]
    assert sorted(json.loads((tmp_path / "shown.json").read_text())) == list(range(2 * ROWS))
