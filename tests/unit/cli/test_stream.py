"""`penstock stream` against a real server, as a shell uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from support.servers.processes import START_S, ServerProcess

_numbers = count()


class Shell:
    """Runs the command with the server's address in the environment."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PENSTOCK_URL": server.url,
            "PENSTOCK_TOKEN": server.token,
        }

    def __call__(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock", "stream", *args],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )


@pytest.fixture
def shell(shared_server: ServerProcess, tmp_path: Path) -> Shell:
    return Shell(shared_server, tmp_path)


@pytest.fixture
def name(shell: Shell) -> str:
    made = f"cli_{next(_numbers)}"
    done = shell("create", made, "n bigint, word string", "--key", "n", "--substreams", "2")
    assert done.returncode == 0, done.stderr
    return made


def test_json_lines_go_in_and_come_out(shell: Shell, name: str) -> None:
    text = '{"n": 1, "word": "ä"}\n{"n": 2, "word": null}\n'
    done = shell("append", name, "-", "--format", "jsonl", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "appended 2 rows, position" in done.stderr
    out = shell("read", name).stdout
    assert sorted((json.loads(line) for line in out.splitlines()), key=lambda row: row["n"]) == [
        {"n": 1, "word": "ä"},
        {"n": 2, "word": None},
    ]


def test_files_are_known_by_their_names(shell: Shell, name: str) -> None:
    (shell.folder / "a.csv").write_text("n,word\n1,one\n")
    (shell.folder / "b.jsonl").write_text('{"n": 2, "word": "two"}\n')
    table = pa.table({"n": [3], "word": ["three"]})
    with pa.ipc.new_file(shell.folder / "c.arrow", table.schema) as writer:
        writer.write_table(table)
    for file in ("a.csv", "b.jsonl", "c.arrow"):
        assert shell("append", name, file).returncode == 0
    for kind in ("csv", "arrow"):
        assert shell("read", name, "--format", kind, "-o", f"out.{kind}").returncode == 0
    with pa.ipc.open_stream(shell.folder / "out.arrow") as reader:
        assert sorted(reader.read_all()["n"].to_pylist()) == [1, 2, 3]
    assert sorted(pyarrow.csv.read_csv(shell.folder / "out.csv")["n"].to_pylist()) == [1, 2, 3]


def test_a_person_gets_a_table(shell: Shell, name: str) -> None:
    shell("append", name, "-", "--format", "csv", stdin="n,word\n1,one\n")
    out = shell("read", name, "--format", "table").stdout
    assert "word" in out.splitlines()[0]
    assert out.splitlines()[-1] == "1 row"


def test_a_range_of_positions_can_be_read(shell: Shell, name: str) -> None:
    for n in (1, 2, 3):
        shell("append", name, "-", "--format", "csv", stdin=f"n,word\n{n},x\n")
    whole = shell("list").stdout
    fields = next(line.split("\t") for line in whole.splitlines() if line.startswith(f"{name}\t"))
    latest = fields[5]
    assert shell("read", name, "--after", latest).stdout == ""
    assert len(shell("read", name, "--until", latest).stdout.splitlines()) == 3


def test_rows_that_do_not_fit_are_refused_in_a_sentence(shell: Shell, name: str) -> None:
    done = shell("append", name, "-", "--format", "jsonl", stdin='{"n": "x"}\n')
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_position_that_is_none_is_a_wrong_call(shell: Shell, name: str) -> None:
    done = shell("tail", name, "--from", "yesterday")
    assert done.returncode == 2
    assert "'--from': give earliest, latest, or a position" in done.stderr


def test_tail_prints_rows_as_they_come(shell: Shell, name: str) -> None:
    shell("append", name, "-", "--format", "csv", stdin="n,word\n1,old\n")
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", "stream", "tail", name, "--from", "earliest"],
        env=shell.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as tail:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline()) == {"n": 1, "word": "old"}
        shell("append", name, "-", "--format", "csv", stdin="n,word\n2,new\n")
        assert json.loads(tail.stdout.readline()) == {"n": 2, "word": "new"}
        tail.send_signal(signal.SIGINT)
        assert tail.wait(START_S) == 130


def test_a_pipe_that_closes_early_is_no_error(shell: Shell, name: str) -> None:
    lines = "".join(f'{{"n": {n}, "word": "{"x" * 100}"}}\n' for n in range(5_000))
    assert shell("append", name, "-", "--format", "jsonl", stdin=lines).returncode == 0
    command = f"{sys.executable} -m penstock stream read {name} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_server_that_is_not_there_is_named(shell: Shell) -> None:
    done = shell("list", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "http://127.0.0.1:9 did not answer within 5 s" in done.stderr
