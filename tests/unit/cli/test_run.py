"""`penstock run` with real scripts: restarts, giving up, signals, and nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.processes import START_S, wait_until

QUICK = ("--backoff", "20ms")


class Supervised:
    """`penstock run` of a script that counts its runs in a file."""

    def __init__(self, folder: Path, body: str) -> None:
        self.folder, self.script = folder, folder / "job.py"
        count = f"open({str(folder / 'runs')!r}, 'a').write('x')\n"
        self.script.write_text("import os, sys, signal, time\n" + count + body)

    def start(self, *options: str, args: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "penstock", "run", *options, str(self.script), *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *options: str, args: tuple[str, ...] = ()) -> tuple[int, str, str]:
        process = self.start(*options, args=args)
        out, err = process.communicate(timeout=START_S)
        return process.returncode, out, err

    def runs(self) -> int:
        file = self.folder / "runs"
        return len(file.read_text()) if file.exists() else 0


def test_a_job_that_fails_twice_and_then_succeeds_ends_with_success(tmp_path: Path) -> None:
    body = f"runs = len(open({str(tmp_path / 'runs')!r}).read())\n"
    body += "print('run', runs, *sys.argv[1:])\nif runs < 3: raise ValueError(f'oh {runs}')\n"
    job = Supervised(tmp_path, body)
    code, out, err = job.run(*QUICK, args=("--restarts", "a b"))
    assert (code, job.runs()) == (0, 3)
    assert out.splitlines() == [f"run {n} --restarts a b" for n in (1, 2, 3)]
    assert "ValueError: oh 1" in err
    assert "it ended with exit code 1; restart 1 of 10 within 600 s; in 0.02 s" in err
    assert "restart 2 of 10 within 600 s; in 0.04 s" in err


def test_a_job_that_always_fails_is_given_up_with_its_last_lines(tmp_path: Path) -> None:
    body = "print('first of all', file=sys.stderr)\n"
    body += "[print('line', n, file=sys.stderr) for n in range(30)]\nsys.exit(7)\n"
    job = Supervised(tmp_path, body)
    code, _, err = job.run(*QUICK, "--restarts", "2", "--window", "1h")
    assert (code, job.runs()) == (7, 3)
    last_words = err.partition("it failed 3 times within 3600 s, the last time with exit code 7")[2]
    assert [f"    line {n}" for n in range(10, 30)] == last_words.splitlines()[1:21]
    assert "giving up: whoever runs the job must mend what its last lines say" in last_words


def test_what_a_restart_cannot_mend_ends_the_first_run(tmp_path: Path) -> None:
    body = "import penstock\nraise penstock.Fenced('taken over by the run r2', code='fenced')\n"
    job = Supervised(tmp_path, body)
    code, _, err = job.run(*QUICK)
    assert (code, job.runs()) == (1, 1)
    assert "after a penstock.Fenced, which a restart cannot mend" in err
    assert "penstock.errors.Fenced: taken over by the run r2" in err
    assert "giving up: another run has taken the query over; stop one of the two runs" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_job_and_the_supervisor(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    body = f"signal.signal(signal.{number.name}, lambda *_: (print('told'), sys.exit(5)))\n"
    body += f"open({str(ready)!r}, 'w').close()\ntime.sleep(60)\n"
    job = Supervised(tmp_path, body)
    process = job.start(*QUICK)
    wait_until("the job runs", ready.exists)
    process.send_signal(number)
    out, _ = process.communicate(timeout=START_S)
    assert (process.returncode, out, job.runs()) == (128 + number, "told\n", 1)


def test_a_second_signal_kills_a_job_that_does_not_stop(tmp_path: Path) -> None:
    ready, signalled = tmp_path / "ready", tmp_path / "signalled"
    body = f"signal.signal(signal.SIGTERM, lambda *_: open({str(signalled)!r}, 'w').close())\n"
    body += f"open({str(ready)!r}, 'w').close()\nwhile True: time.sleep(60)\n"
    process = Supervised(tmp_path, body).start(*QUICK)
    wait_until("the job runs", ready.exists)
    process.send_signal(signal.SIGTERM)
    wait_until("the job is signalled", signalled.exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=START_S)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_signal_ends_a_pause(tmp_path: Path) -> None:
    job = Supervised(tmp_path, "sys.exit(1)\n")
    process = job.start("--backoff", "30s")
    assert process.stderr is not None
    assert "in 30 s" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=START_S)
    assert (process.returncode, job.runs()) == (128 + signal.SIGTERM, 1)


def test_what_a_run_leaves_behind_is_gone_before_the_next(tmp_path: Path) -> None:
    """As with Spark: the job dies and its JVM stays, holding the same error output."""
    left = tmp_path / "left"
    body = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\n"
    body += f"open({str(left)!r}, 'a').write(f'{{child.pid}}\\n')\nos.kill(os.getpid(), 9)\n"
    job = Supervised(tmp_path, body)
    code, _, err = job.run(*QUICK, "--restarts", "0")
    assert (code, job.runs()) == (128 + signal.SIGKILL, 1)
    assert "the last time with signal 9" in err
    # It is told to end before the supervisor ends, and does so in its own time.
    wait_until("what was left is gone", lambda: not _is_alive(int(left.read_text())))


def _is_alive(pid: int) -> bool:
    """A killed process that nobody has reaped yet is not alive."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("option", [("--window", "0s"), ("--backoff", "soon"), ("--restart", "3")])
def test_a_wrong_option_is_refused_before_the_job_runs(
    tmp_path: Path, option: tuple[str, str]
) -> None:
    job = Supervised(tmp_path, "")
    assert (job.run(*option)[0], job.runs()) == (2, 0)
