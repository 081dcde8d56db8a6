"""A job under supervision: run it, ask what to do when it ends, do that, until it ends for good."""

from __future__ import annotations

from collections.abc import Callable

from penstock.supervise.job import Job
from penstock.supervise.restarts import Again, Done, Restarts

LINES_SHOWN = 20


def run_until_final(name: str, job: Job, restarts: Restarts, say: Callable[[str], None]) -> int:
    """Run the job, and again as `restarts` decides; the exit code to end with.

    That is the job's own, 128 more than the signal that ended it, or 128 more than the signal that
    said to stop. `say` is given every restart and the reason for giving up, in sentences.
    """
    while True:
        ended = job.run()
        if (signal_sent := job.signal_sent()) is not None:
            return 0 if ended.code == 0 else 128 + signal_sent
        decision = restarts.decide(ended)
        if isinstance(decision, Done):
            return 0
        if isinstance(decision, Again):
            say(f"{name}: {decision.reason}; in {decision.after_s:g} s")
            job.pause(decision.after_s)
            if (signal_sent := job.signal_sent()) is not None:
                return 128 + signal_sent
            continue
        last = [f"    {line}" for line in ended.lines[-LINES_SHOWN:]] or ["    (nothing)"]
        say("\n".join((f"{name}: {decision.reason}; its last lines:", *last)))
        say(f"giving up: {decision.act}")
        return ended.code if ended.code > 0 else 128 - ended.code
