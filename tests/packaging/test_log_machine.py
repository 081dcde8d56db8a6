"""A machine that runs the log alone: the wheel and its dependencies, no PySpark, no Java."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.processes import ServerProcess
from support.wheels import link_packages, required_packages, run, unpack_wheels


@pytest.fixture(scope="module")
def packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of an environment with what `pip install penstock` brings and nothing else."""
    folder = unpack_wheels(tmp_path_factory.mktemp("log-machine"), wheel)
    return str(link_packages(folder, required_packages("penstock")))


def penstock(
    packages: str, folder: Path, *command: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    # Without -S Python would add the packages of the environment that runs this test.
    return run(
        *(sys.executable, "-S", "-m", "penstock", *command),
        cwd=folder,
        PYTHONPATH=packages,
        **environment,
    )


def test_there_is_no_spark_in_it(packages: str, tmp_path: Path) -> None:
    script = (
        "import importlib.util as u; "
        "print([m for m in ('pyspark', 'duckdb', 'psutil', 'penstock_lab') if u.find_spec(m)])"
    )
    done = run(sys.executable, "-S", "-c", script, cwd=tmp_path, PYTHONPATH=packages)
    assert done.stdout.strip() == "[]", done.stderr


def test_it_serves_a_stream_that_is_appended_to_and_read(packages: str, tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path / "log", python=(sys.executable, "-S"), environment={"PYTHONPATH": packages}
    ).start()
    try:
        reach = {"PENSTOCK_URL": server.url, "PENSTOCK_TOKEN": server.token}
        made = penstock(packages, tmp_path, "stream", "create", "clicks", "page string", **reach)
        assert made.returncode == 0, made.stderr
        rows = tmp_path / "rows.jsonl"
        rows.write_text('{"page": "/home"}\n{"page": "/about"}\n', encoding="utf-8")
        sent = penstock(packages, tmp_path, "stream", "append", "clicks", str(rows), **reach)
        assert sent.returncode == 0, sent.stderr
        read = penstock(packages, tmp_path, "stream", "read", "clicks", "--format", "json", **reach)
        assert read.returncode == 0, read.stderr
        pages = {json.loads(line)["page"] for line in read.stdout.splitlines()}
        assert pages == {"/home", "/about"}
    finally:
        server.stop()


def test_the_doctor_treats_spark_as_optional(packages: str, tmp_path: Path) -> None:
    done = penstock(packages, tmp_path, "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip install 'penstock[spark]'" in done.stdout


@pytest.mark.parametrize(
    "call", ["penstock.session()", "penstock.attach(None)", "penstock.Outputs(hot=None)"]
)
def test_what_needs_spark_says_how_to_get_it(packages: str, tmp_path: Path, call: str) -> None:
    script = (
        "import penstock\n"
        f"try:\n    {call}\n"
        "except penstock.BadCall as error:\n    print(error.code, error.message)"
    )
    done = run(sys.executable, "-S", "-c", script, cwd=tmp_path, PYTHONPATH=packages)
    assert done.stdout.startswith("no_spark"), done.stderr
    assert "pip install 'penstock[spark]'" in done.stdout


@pytest.mark.parametrize("command", ["bench", "demo"])
def test_a_command_of_the_laboratory_says_how_to_get_it(
    packages: str, tmp_path: Path, command: str
) -> None:
    done = penstock(packages, tmp_path, command)
    assert done.returncode == 1
    assert "pip install penstock-lab" in done.stderr
    assert "Traceback" not in done.stderr
