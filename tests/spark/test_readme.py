"""Commands that the README shows, word for word; its example in Python is run from the wheel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support.readme import blocks


def test_the_shell_example_runs(tmp_path: Path) -> None:
    setup, example = blocks("sh")
    assert re.findall(r"^make (\w+)", setup, re.MULTILINE) == ["demo", "test"]
    serve, *rest = example.splitlines(keepends=True)
    assert serve.startswith("penstock serve")
    assert serve.rstrip().endswith("&")
    # The server is given until it has said where it listens; a person types more slowly.
    script = (
        f"{serve}until [ -s log/server.json ]; do sleep 0.1; done\n{''.join(rest)}kill $!\nwait\n"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complained = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, complained
    assert '"page":"/home"' in said.replace(" ", "")
