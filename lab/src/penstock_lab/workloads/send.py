"""The open-loop sender as a process of its own: `python -m penstock_lab.workloads.send --help`.

A pause of Python or Spark in another process does not delay its schedule. It ends by itself when
the process that started it is gone.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from penstock.client import Client
from penstock.client.address import CA_VARIABLE, TOKEN_VARIABLE
from penstock.errors import BadCall, PenstockError
from penstock.model.no_pandas import leave_out_pandas
from penstock_lab.processes import READY, first_in_line
from penstock_lab.workloads.load import Load, pieces
from penstock_lab.workloads.sending import (
    LAG_MS_P99_MAX,
    FolderTarget,
    Lane,
    LogTarget,
    Sent,
    Target,
    report,
    send,
)

__all__ = ["LAG_MS_P99_MAX", "READY", "SenderReport", "Sent"]

SWITCH_S = 0.001


class SenderReport(msgspec.Struct, frozen=True):
    """The report of a sender that has sent everything: figures, when it began, and every lag."""

    sent: Sent
    started_ms: int
    lag_ms: list[float]


def _stop_without_parent(stop: threading.Event) -> None:
    """Ends the sender when the process that started it is gone, however that went."""
    parent = os.getppid()
    while not stop.wait(0.5):
        if os.getppid() != parent:
            stop.set()


def _wait_for_go() -> bool:
    """Say that everything is made, and wait for a line; False if there will be none."""
    print(READY, flush=True)
    return bool(sys.stdin.readline())


def _targets(url: str | None, into: Path | None, count: int) -> list[Target]:
    if into is not None:
        return [FolderTarget(into) for _ in range(count)]
    if url is None:
        raise BadCall("give --url, for streams of a server, or --into", code="bad_request")
    token, ca = os.environ.get(TOKEN_VARIABLE, ""), os.environ.get(CA_VARIABLE)
    return [LogTarget(Client(url, token, ca)) for _ in range(count)]


@click.command()
@click.option("--url", envvar="PENSTOCK_URL", help="The server's URL.")
@click.option("--into", type=click.Path(path_type=Path), help="Write files here instead.")
@click.option("--load", "load_json", required=True, help="What to send, as JSON.")
@click.option("--wait", is_flag=True, help="Say when all is made; begin at a line of input.")
@click.option("--lanes", default=16, show_default=True, help="Appends under way at once.")
@click.option("--producer", required=True, help="Never used before with this stream.")
def main(
    url: str | None,
    into: Path | None,
    load_json: str,
    wait: bool,
    lanes: int,
    producer: str,
) -> None:
    """Send rows on a fixed schedule and report as JSON; the token is read from PENSTOCK_TOKEN."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        made = pieces(msgspec.json.decode(load_json, type=Load))
        crew = [
            Lane(n, target, f"{producer}-{n}")
            for n, target in enumerate(_targets(url, into, lanes))
        ]
        threading.Thread(target=_stop_without_parent, args=(stop,), daemon=True).start()
        if wait and not _wait_for_go():
            return
        # A lane that wakes up must not wait long for one that is busy encoding, nor for a
        # collection of garbage; making the rows was ordinary work, sending them is not.
        sys.setswitchinterval(SWITCH_S)
        gc.freeze()
        gc.disable()
        raised = first_in_line()
        done = send(crew, made, stop)
    except PenstockError as error:
        _fail(error)
    failed = next((lane.error for lane in crew if lane.error is not None), None)
    if failed is not None:
        # No report: whoever waits for it must not take a part of the rows for all of them.
        _fail(failed)
    lags = [round(lag, 2) for lane in crew for lag in lane.lag_ms]
    sender_report = SenderReport(report(crew, done.seconds, raised), done.started_ms, lags)
    print(msgspec.json.encode(sender_report).decode("ascii"), flush=True)


def _fail(error: PenstockError) -> NoReturn:
    print(f"error: {error.message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    leave_out_pandas()
    main()
