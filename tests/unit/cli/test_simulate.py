"""`penstock simulate`: its table, its files, its picture, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from support.skip_reasons import NO_MATPLOTLIB

PAGE = Path(__file__).parents[3] / "docs" / "simulate.md"
SMALL = ["--queries", "3", "--seconds", "5s"]


def run(args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *args])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def figures(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason=NO_MATPLOTLIB)
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(commands) > 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", "".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "workers.png").read_bytes().startswith(b"\x89PNG")


def test_policies_and_orders_meet_the_same_traffic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.json"
    chosen = ["--policy", "deadline", "--policy", "fixed", "--order", "edf", "--order", "fifo"]
    code, out, _ = run([*SMALL, *chosen, "--json", str(file)], capsys)
    assert code == 0
    assert "deadline/edf" in out
    runs = figures(file)["runs"]
    assert [(each["policy"], each["order"]) for each in runs] == [
        ("deadline", "edf"),
        ("deadline", "fifo"),
        ("fixed", "edf"),
        ("fixed", "fifo"),
    ]
    assert len({len(each["queries"]) for each in runs}) == 1
    assert all(0 <= each["miss_ratio"] <= 1 for each in runs)


def test_the_same_seed_gives_the_same_file_and_another_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for number, seed in enumerate(("1", "1", "2")):
        file = tmp_path / f"{number}.json"
        run([*SMALL, "--policy", "deadline", "--seed", seed, "--json", str(file)], capsys)
        files.append(figures(file)["runs"])
    assert files[0] == files[1] != files[2]


def test_more_workers_have_the_same_rows_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.json"
    counts = ["--workers", "2", "--workers", "4", "--policy", "asap"]
    run([*SMALL, *counts, "--json", str(file)], capsys)
    two, four = figures(file)["runs"]
    assert (two["cores"], four["cores"]) == (8, 16)
    assert four["p95_ms"] <= two["p95_ms"]


def test_a_run_that_never_catches_up_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    overload = ["--policy", "fixed", "--rate", "1000000", "--queries", "3", "--seconds", "3s"]
    _, out, _ = run(overload, capsys)
    assert "the rate is more than it sustains" in out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--queries", "500"], "give fewer queries, longer deadlines, more cores"),
        (["--workers", "900", "--cores", "200"], "too many to simulate"),
    ],
)
def test_a_world_that_cannot_be_is_refused_in_a_sentence(
    args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(args, capsys)
    assert (code, out) == (1, "")
    assert sentence in err


def test_a_wrong_option_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--deadline", "0s"], capsys)[0] == 2
    assert run(["--policy", "lucky"], capsys)[0] == 2


def test_without_matplotlib_a_sentence_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, err = run([*SMALL, "--plot", str(tmp_path / "p.png")], capsys)
    assert (code, out) == (1, "")
    assert "pip install penstock-lab" in err
