"""docs/streams.md is run here, word for word, and the other commands that look after a log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import click
import pytest

from penstock.cli.measures import Size, Span, age
from penstock.client import Client
from support.servers.processes import START_S, ServerProcess

PAGE = Path(__file__).parents[3] / "docs" / "streams.md"
_numbers = count()


def blocks() -> list[tuple[str, str]]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    parts = []
    for language, body in blocks():
        if language == "python":
            parts.append(f"python - <<'END'\n{body}END\n")
        elif "penstock serve" in body:
            serve, _, rest = body.partition("\n")
            waits = "until [ -s penstock-data/server.json ]; do sleep 0.1; done"
            parts.append(f"{serve}\n{waits}\n{rest}")
        else:
            parts.append(body)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-e", "-c", "".join(parts) + "kill $!\nwait\n"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complained = process.communicate(timeout=START_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, complained
    assert "bids 1 1" in said, "the consumer printed its batch"
    assert "group\tmailer\tbids\t0\t1" in said, "and did not commit it"
    assert "nothing is held for mailer any more in bids" in said
    assert '"note": "new"' in said
    assert "4 substreams; unread rows are kept for 7 d or down to 10000000000 bytes" in said
    assert "restored: 1 streams and 0 queries" in said


class Shell:
    """Runs the command with the server's address in the environment."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PENSTOCK_URL": server.url,
            "PENSTOCK_TOKEN": server.token,
        }

    def __call__(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock", *args],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )


@pytest.fixture
def shell(shared_server: ServerProcess, tmp_path: Path) -> Shell:
    return Shell(shared_server, tmp_path)


@pytest.fixture
def name(client: Client) -> str:
    return client.create(f"kept_{next(_numbers)}", "n bigint").name


def test_a_stream_in_use_is_deleted_by_force_only(shell: Shell, client: Client, name: str) -> None:
    client.register("reader", name)
    refused = shell("stream", "delete", name)
    assert refused.returncode == 1
    assert "the group 'reader'" in refused.stderr
    assert shell("stream", "delete", name, "--force").stdout == f"{name} is deleted\n"


def test_a_change_that_would_lose_data_is_refused_in_a_sentence(shell: Shell, name: str) -> None:
    shell("stream", "alter", name, "--substreams", "3")
    refused = shell("stream", "alter", name, "--substreams", "2")
    assert refused.returncode == 1
    assert "rows stay where they are" in refused.stderr
    assert shell("stream", "alter", name).returncode == 2


def test_queries_are_listed_reset_and_deleted(shell: Shell, client: Client, name: str) -> None:
    client.take_over(name, "r", name="mine")
    assert f"{name}\tmine\tinstance 1\tno batch" in shell("query", "list").stdout
    assert "instance 2" in shell("query", "reset", name).stdout
    assert shell("query", "delete", name).returncode == 0
    refused = shell("query", "delete", name)
    assert refused.returncode == 1
    assert "there is no query" in refused.stderr


def test_a_restore_never_writes_over_a_folder(shell: Shell) -> None:
    assert shell("backup", "copy").returncode == 0
    (shell.folder / "full").mkdir()
    (shell.folder / "full" / "something").touch()
    refused = shell("restore", "copy", "--data", "full")
    assert refused.returncode == 1
    assert "not an empty folder" in refused.stderr


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("7d", 604_800_000), ("ever", 0)])
def test_a_time_is_written_as_people_write_it(text: str, ms: int) -> None:
    assert Span().convert(text, None, None) == ms


@pytest.mark.parametrize(
    ("text", "size"), [("10GB", 10**10), ("1 KiB", 1024), ("7", 7), ("all", 0)]
)
def test_a_size_is_written_as_people_write_it(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("kind", [Span(), Size()])
@pytest.mark.parametrize("text", ["", "x", "-1d", "0s", "0GB", "5 parsecs"])
def test_what_is_no_time_or_size_is_refused(kind: click.ParamType[int], text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a"):
        kind.convert(text, None, None)


def test_an_age_is_said_in_its_largest_unit() -> None:
    assert [age(ms) for ms in (10, 1_500, 120_000, 8_000_000, 200_000_000)] == [
        "a moment", "1 s", "2 m", "2 h", "2 d",
    ]  # fmt: skip
