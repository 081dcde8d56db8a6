"""What is sent: every event once, at its time, in the streams asked for and no others."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from penstock.errors import BadCall
from penstock_lab.workloads import load as load_module
from penstock_lab.workloads.load import WORKLOADS, Load, pieces
from penstock_lab.workloads.nexmark import Nexmark, NexmarkOptions

NEXMARK = {"persons": "p", "auctions": "a", "bids": "b"}


def together(load: Load, name: str) -> pa.Table:
    mine = [piece.rows for piece in pieces(load) if piece.stream == name]
    return pa.Table.from_batches(mine).combine_chunks()


@pytest.mark.parametrize("rate", [1, 7, 333, 2_000])
@pytest.mark.parametrize("traffic", ["constant", "normal", "burst"])
def test_the_pieces_together_hold_every_row_once_whatever_the_rate(rate: int, traffic: str) -> None:
    built = {"workload": "nexmark", "streams": NEXMARK, "rate": rate, "seconds": 3.0}
    load = msgspec.convert({**built, "traffic": traffic}, Load)
    count = load.schedule().rows_before(load.ticks)
    whole = Nexmark(NexmarkOptions(rate=rate), 7).events(0, count)
    for stream, name in NEXMARK.items():
        expected = pa.Table.from_batches([getattr(whole, stream)])
        if expected.num_rows:
            assert together(load, name).equals(expected.combine_chunks())


def test_it_does_not_matter_in_how_many_calls_the_rows_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = Load("nexmark", NEXMARK, 1_000, 2.0, first=77, tick_ms=50)
    at_once = [(piece.tick, piece.stream, piece.rows) for piece in pieces(load)]
    monkeypatch.setattr(load_module, "EVENTS_AT_ONCE", 130)
    in_parts = [(piece.tick, piece.stream, piece.rows) for piece in pieces(load)]
    assert len(at_once) == len(in_parts)
    assert all(a[:2] == b[:2] and a[2].equals(b[2]) for a, b in zip(at_once, in_parts, strict=True))


def test_streams_that_nobody_reads_are_not_sent_and_do_not_change_the_others() -> None:
    only = Load("nexmark", {"bids": "b"}, 1_000, 2.0)
    assert {piece.stream for piece in pieces(only)} == {"b"}
    assert together(only, "b").equals(together(Load("nexmark", NEXMARK, 1_000, 2.0), "b"))


def test_pieces_come_in_the_order_they_are_due() -> None:
    due = [piece.due_us for piece in pieces(Load("nexmark", NEXMARK, 1_000, 2.0, tick_ms=50))]
    assert due == sorted(due)
    assert due[-1] == 1_950_000


def test_event_time_runs_as_fast_as_asked() -> None:
    load = Load("nexmark", {"bids": "b"}, 1_000, 2.0, event_speed=4.0)
    at = together(load, "b")["date_time"].cast(pa.int64())
    assert (at[-1].as_py() - at[0].as_py()) / 1e6 == pytest.approx(8.0, abs=0.1)


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_what_is_sent_fits_the_stream_it_is_meant_for(workload: str) -> None:
    streams = {name: name for name in WORKLOADS[workload].schemas}
    for piece in pieces(Load(workload, streams, 500, 0.5)):
        schema = WORKLOADS[workload].stream_schema(piece.stream)
        assert piece.rows.schema.names == schema.names[:-1]
        assert schema.names[-1] == "sent_at"


def test_a_load_travels_as_json() -> None:
    load = Load("ads", {"ads": "run_ads"}, 100, 1.5, options={"zipf": 1.0})
    assert msgspec.json.decode(msgspec.json.encode(load), type=Load) == load


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rate": 0}, "sends nothing"),
        ({"seconds": 0.0}, "sends nothing"),
        ({"workload": "tides"}, "there is no workload 'tides'; there is nexmark"),
        ({"streams": {"gulls": "g"}}, "nexmark has no stream gulls; it has persons"),
    ],
)
def test_a_load_that_cannot_be_sent_is_refused(wrong: dict[str, object], said: str) -> None:
    given = {"workload": "nexmark", "streams": {"bids": "b"}, "rate": 1, "seconds": 1.0, **wrong}
    with pytest.raises(BadCall, match=said):
        Load(**given)  # type: ignore[arg-type]
