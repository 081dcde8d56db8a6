"""`penstock.session` in a process of its own: it starts a server, hides the token, cleans up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil

from penstock.client.address import read_server_file
from support.servers.processes import ServerProcess
from support.spark.class_archive import DRIVERS

JOB = """
import json, os, sys
import psutil
import penstock
from penstock.client.address import read_server_file

def line_of(child):
    try:
        return " ".join(child.cmdline())
    except psutil.Error:  # it has just ended, as the small programs Hadoop calls do
        return ""

spark = penstock.session("local[2]", data=sys.argv[1], conf={"spark.ui.enabled": False})
left = read_server_file(sys.argv[1])
lines = [line_of(one) for one in psutil.Process().children(recursive=True)]
again = penstock.session("local[2]", data=sys.argv[1])
penstock.create("numbers", "n bigint")
penstock.append("numbers", [{"n": 1}, {"n": 2}])
told = {
    "same": again is spark,
    "version": penstock.verify(spark) == penstock.__version__,
    "token_on_a_command_line": any(left.token in line for line in lines),
    "jvm_seen": any("spark.penstock.url" in line for line in lines),
    "token_in_new_session": spark.newSession().conf.get("spark.penstock.token") == left.token,
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    "rows": spark.read.format("penstock").load("numbers").count(),
    "server": left.pid,
}
print("TOLD " + json.dumps(told), flush=True)
if sys.argv[2] == "stop":
    spark.stop()
    print("STOPPED", psutil.pid_exists(left.pid), flush=True)
"""


def run(folder: Path, how: str) -> tuple[dict[str, object], str]:
    # Options that tests start drivers with name a collector, so that the session would not.
    left_out = ("PENSTOCK_", "PYSPARK_", DRIVERS)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    kept["JAVA_TOOL_OPTIONS"] = f"-Xlog:gc,gc+init:file={folder}/collections-%p.log"
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(folder / "data"), how],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("TOLD "))
    return dict(json.loads(line.removeprefix("TOLD "))), done.stdout


def test_a_session_brings_its_server_and_takes_it_along_when_it_stops(tmp_path: Path) -> None:
    facts, said = run(tmp_path, "stop")
    server = facts.pop("server")
    assert facts == {
        "same": True,
        "version": True,
        "token_on_a_command_line": False,
        "jvm_seen": True,
        "token_in_new_session": True,
        "partitions": "2",
        "rows": 2,
    }
    assert "STOPPED False" in said
    assert isinstance(server, int)
    assert read_server_file(tmp_path / "data") is None


def test_a_session_has_room_for_old_objects_and_classes_from_the_start(tmp_path: Path) -> None:
    run(tmp_path, "forget")
    # There is one of Java's launcher too.
    logs = [log.read_text() for log in tmp_path.glob("collections-*.log")]
    (collections,) = [log for log in logs if "Using Parallel" in log]
    capacities = re.findall(r"Heap (?:Initial|Max) Capacity: (\d+)([MG])", collections)
    first, most = (int(number) << (30 if unit == "G" else 20) for number, unit in capacities)
    assert first > 0.9 * min(most, psutil.virtual_memory().total / 4)
    assert "Metadata GC Threshold" not in collections


def test_a_program_that_forgets_to_stop_leaves_no_server_behind(tmp_path: Path) -> None:
    facts, _ = run(tmp_path, "forget")
    assert not Path(f"/proc/{facts['server']}").exists()
    assert read_server_file(tmp_path / "data") is None


ATTACHED = """
import sys
import psutil
from pyspark.sql import SparkSession
import penstock

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = penstock.attach(builder, url=sys.argv[1], token=sys.argv[2]).getOrCreate()
jvms = [child for child in psutil.Process().children(recursive=True) if child.name() == "java"]
lines = [" ".join(child.cmdline()) for child in jvms]
assert any("spark.penstock.url" in line for line in lines), lines
assert not any(sys.argv[2] in line for line in lines)
assert spark.newSession().conf.get("spark.penstock.token") == sys.argv[2]
print("READ", spark.read.format("penstock").load("attached").count(), flush=True)
spark.stop()
"""


def test_attach_hands_the_token_to_the_jvm_and_to_no_command_line(
    shared_server: ServerProcess, tmp_path: Path
) -> None:
    with shared_server.client() as client:
        client.create("attached", "n bigint")
        client.append("attached", [{"n": 1}, {"n": 2}, {"n": 3}])
    done = subprocess.run(
        [sys.executable, "-c", ATTACHED, shared_server.url, shared_server.token],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "READ 3" in done.stdout
    assert "on the command line" not in done.stderr


ROTATED = """
import os, sys, time
from pyspark import SparkContext
from pyspark.sql import SparkSession
import penstock
from penstock.client import Client
from penstock.errors import BadCall

url, of_server, own = sys.argv[1:]

def started(name, value):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.penstock.url", url).config(f"spark.penstock.{name}", value)
    return penstock.attach(builder).getOrCreate()

def put(file, token):
    fresh = os.open(file + ".new", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fresh, token.encode())
    os.close(fresh)
    os.replace(file + ".new", file)

def is_taken(token):
    try:
        with Client(url, token) as client:
            return bool(client.streams())
    except BadCall:
        return False

put(own, "first-token")
spark = started("token", "first-token")
print("READ", spark.read.format("penstock").load("rotated").count(), flush=True)
spark.stop()
SparkContext._jvm.java.lang.System.clearProperty("spark.penstock.token")
spark = started("tokenFile", own)
print("READ", spark.read.format("penstock").load("rotated").count(), flush=True)
put(own, "second-token")
put(of_server, "second-token")
while is_taken("first-token") or not is_taken("second-token"):
    time.sleep(0.1)
print("READ", spark.read.format("penstock").load("rotated").count(), flush=True)
spark.stop()
"""


def test_a_job_reads_its_token_file_anew_and_warns_once_of_a_token_on_its_command_line(
    tmp_path: Path,
) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text("first-token\n")
    server = ServerProcess(tmp_path / "server", "--token-file", str(tokens)).start()
    try:
        with server.client() as client:
            client.create("rotated", "n bigint")
            client.append("rotated", [{"n": 1}, {"n": 2}, {"n": 3}])
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "PYSPARK_"))}
        done = subprocess.run(
            [sys.executable, "-c", ROTATED, server.url, str(tokens), str(tmp_path / "own")],
            cwd=tmp_path,
            env=kept,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("READ 3") == 3
    warning = "spark.penstock.token is on the command line of this JVM"
    assert done.stderr.count(warning) == 1
    for way in ("PENSTOCK_TOKEN", "spark.penstock.tokenFile"):
        assert way in done.stderr
