"""The sender: its schedule is fixed, and what it cannot keep it admits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from penstock.errors import TryAgain
from penstock.testing.clock import ManualClock
from penstock_lab.workloads.load import Load, pieces
from penstock_lab.workloads.send import main
from penstock_lab.workloads.sending import Done, FolderTarget, Lane, report, send


class Recording:
    """Keeps what it is given; fails from a given sequence on."""

    def __init__(self, fail_from: int | None = None) -> None:
        self.fail_from = fail_from
        self.put_so_far: list[tuple[str, int, pa.RecordBatch]] = []
        self.streams: list[str] = []

    def prepare(self, streams: Sequence[str]) -> None:
        self.streams = list(streams)

    def put(self, stream: str, rows: pa.RecordBatch, producer: str, sequence: int) -> bool:
        if self.fail_from is not None and sequence >= self.fail_from:
            raise TryAgain("no answer", code="unreachable")
        self.put_so_far.append((producer, sequence, rows))
        return True


def bids(rate: int, seconds: float) -> Load:
    return Load("demo_bids", {"bids": "bids"}, rate, seconds)


def sent_by(lanes: list[Lane], load: Load) -> tuple[Done, threading.Event]:
    stop = threading.Event()
    return send(lanes, pieces(load), stop, ManualClock(1_000_000, ms_per_reading=1_000)), stop


def test_a_late_tick_keeps_its_intended_send_time() -> None:
    target = Recording()
    sent_by([Lane(0, target, "p")], bids(1_000, 0.1))
    stamps = [rows["sent_at"].cast(pa.int64())[0].as_py() for _, _, rows in target.put_so_far]
    # The clock has moved on by one reading when the wall is looked at; the first tick has a lead.
    started_ms = 1_000_000 + 1_000 + 100
    assert stamps == [(started_ms + 20 * tick) * 1_000 for tick in range(5)]


def test_when_it_began_is_reported_as_rows_carry_it() -> None:
    target = Recording()
    done, _ = sent_by([Lane(0, target, "p")], bids(1_000, 0.1))
    first = target.put_so_far[0][2]["sent_at"].cast(pa.int64())[0].as_py()
    assert done.started_ms * 1_000 == first


def test_lateness_is_reported() -> None:
    lanes = [Lane(0, Recording(), "p")]
    sent_by(lanes, bids(1_000, 0.1))
    assert report(lanes, 0.1, False).lag_ms_p99 > 1_000


def test_every_lane_has_a_producer_and_growing_sequences_of_its_own() -> None:
    target = Recording()
    lanes = [Lane(n, target, f"p-{n}") for n in range(3)]
    sent_by(lanes, bids(1_000, 0.2))
    by_producer = {
        lane.producer: [seq for who, seq, _ in target.put_so_far if who == lane.producer]
        for lane in lanes
    }
    assert by_producer == {"p-0": [1, 4, 7, 10], "p-1": [2, 5, 8], "p-2": [3, 6, 9]}
    assert report(lanes, 0.2, False).rows == 200
    assert target.streams == ["bids"]


def test_a_failed_append_stops_every_lane_and_is_kept() -> None:
    lanes = [Lane(0, Recording(fail_from=3), "p")]
    _, stop = sent_by(lanes, bids(1_000, 0.2))
    assert stop.is_set()
    assert lanes[0].error is not None
    assert lanes[0].rows == 40


def test_a_sender_whose_append_failed_ends_with_the_reason_and_gives_no_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock_lab.workloads.send._targets", lambda *_: [Recording(fail_from=3)])
    # What a process does to itself must not be done to this one.
    monkeypatch.setattr("penstock_lab.workloads.send.first_in_line", lambda: False)
    for name in ("signal.signal", "sys.setswitchinterval", "gc.freeze", "gc.disable"):
        monkeypatch.setattr(name, lambda *_: None)
    load = msgspec.json.encode(bids(1_000, 0.1)).decode("utf-8")
    ended = CliRunner().invoke(main, ["--load", load, "--producer", "p", "--lanes", "1"])
    assert ended.exit_code == 1
    assert (ended.stdout, ended.stderr) == ("", "error: no answer\n")


def test_rows_for_files_are_there_whole_and_with_their_send_time(tmp_path: Path) -> None:
    sent_by([Lane(0, FolderTarget(tmp_path), "p")], bids(1_000, 0.1))
    files = sorted(path.name for path in (tmp_path / "bids").iterdir())
    assert files == [f"{n:08d}.parquet" for n in range(1, 6)]
    assert pq.read_table(tmp_path / "bids").num_rows == 100
    assert "sent_at" in pq.read_schema(tmp_path / "bids" / files[0]).names
