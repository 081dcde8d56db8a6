"""The command's manners: help that teaches, one sentence on stderr, exit codes."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from penstock.cli.main import COMMANDS, main


def run(args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(args)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_help_names_every_command_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["--help"], capsys)
    assert code == 0
    assert all(f"  {name} " in out for name in COMMANDS)
    assert "penstock stream append bids bids.jsonl" in out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"], capsys)[1] == f"penstock {metadata.version('penstock')}\n"


def test_a_wrong_call_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nope"], capsys)[0] == 2
    assert run(["stream", "create"], capsys)[0] == 2


def test_an_error_is_one_sentence_and_ends_with_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(["stream", "list", "--data", str(tmp_path)], capsys)
    assert (code, out) == (1, "")
    assert err.startswith("error: no server is known")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"penstock {metadata.version('penstock')}\n"


def test_a_server_imports_no_client_and_nothing_that_it_never_uses() -> None:
    script = (
        "import sys, penstock.cli.main, penstock.cli.serve; "
        "sys.exit(', '.join(sys.modules.keys() & {'pyspark', 'pandas', 'urllib3', 'rich'}) or 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_arrow_makes_arrays_without_pandas_in_a_process_of_ours() -> None:
    script = (
        "import sys; from penstock.model.no_pandas import leave_out_pandas; leave_out_pandas(); "
        "import pyarrow; pyarrow.array([1, None]); pyarrow.array([{'a': 'b'}]); "
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_help_and_the_client_do_not_import_pyspark() -> None:
    script = (
        "import sys, penstock, penstock.cli.main, penstock.cli.stream; "
        "sys.exit('pyspark' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
