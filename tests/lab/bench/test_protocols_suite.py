"""The protocols suite: its plan, its figures, without running it."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph.reader import Seen
from penstock_lab.baselines.task_graph.sources import load_of
from penstock_lab.experiment.figures import latency_p50, ratios
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.verdict import Kind, Verdict
from penstock_lab.measure.task_graph_answers import check
from penstock_lab.suites.protocols.cells import Cell, Plan, plan_of
from penstock_lab.suites.protocols.figures import figures
from penstock_lab.suites.protocols.runs import Record

PROTOCOLS = {"marker", "transaction", "aligned", "unsafe"}
TEN, HUNDRED = Cell("q4", 10), Cell("q4", 100)


def measured(
    cell: Cell, protocol: str, repeat: int, p50: float, p99: float, kind: Kind = "ok"
) -> Record:
    latency = Latencies(100, p50, p50, p99, p99, p99)
    run = Run(cell.query, protocol, repeat, Verdict(kind), 2_000, latency=latency)
    return Record(cell, run, commits_per_s=90.0)


def plan() -> Plan:
    return plan_of(quick=True)


def test_ratios_are_taken_within_a_repeat_and_the_middle_one_counts() -> None:
    # The machine was twice as slow in the last repeat, for both.
    times = ((10, 20), (11, 33), (40, 60))
    runs = [
        measured(TEN, protocol, repeat, pair[place], 100)
        for repeat, pair in enumerate(times)
        for place, protocol in enumerate(("marker", "transaction"))
    ]
    (ratio,) = ratios(runs, ("transaction",), "marker", latency_p50)
    assert ratio.repeats == (2.0, 3.0, 1.5)
    assert ratio.value == 2.0


def test_the_headline_names_the_worst_cell() -> None:
    runs = []
    for cell, latency in (
        (TEN, {"marker": 20.0, "transaction": 50.0, "aligned": 10.0, "unsafe": 16.0}),
        (HUNDRED, {"marker": 100.0, "transaction": 95.0, "aligned": 90.0, "unsafe": 90.0}),
    ):
        runs += [measured(cell, name, 0, value, 4 * value) for name, value in latency.items()]
    by_name = {figure.name: figure for figure in figures(plan(), runs)}
    assert by_name["headline.marker_vs_transaction_p50_10ms"].value == 2.5
    assert by_name["headline.marker_vs_transaction_p99_10ms"].value == 2.5
    assert by_name["headline.marker_vs_transaction_p50_min"].value == 0.95
    assert "Q4 every 100 ms" in by_name["headline.marker_vs_transaction_p50_min"].meaning
    assert by_name["headline.aligned_vs_marker_p50_max"].value == 0.9
    assert by_name["headline.marker_vs_unsafe_p50_max"].value == 1.25
    assert by_name["log.Q4.10ms.marker.p50_ms"].value == 20.0


def test_a_run_that_does_not_count_enters_no_ratio() -> None:
    runs = [
        measured(TEN, "marker", 0, 10, 20),
        measured(TEN, "transaction", 0, 90, 99, "wrong"),
    ]
    by_name = {figure.name: figure.value for figure in figures(plan(), runs)}
    assert "headline.marker_vs_transaction_p50_10ms" not in by_name
    assert by_name["headline.answers_wrong"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queries": ("q9",)}, "there is no task graph 'q9'; there is q4, q8"),
        ({"chosen": ("hope",)}, "there is no protocol 'hope'"),
        ({"log": "paper"}, "there is no log 'paper'; there is jetstream, embedded"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(BadCall, match=message):
        plan_of(quick=True, **given)  # type: ignore[arg-type]


def test_a_quick_run_is_within_twenty_minutes_and_lacks_nothing() -> None:
    assert plan().minutes <= 20
    assert plan().log == "jetstream"
    assert plan().repeats >= 3
    assert {(cell.query, cell.interval_ms) for cell in plan().cells} == {
        (query, ms) for query in ("q4", "q8") for ms in (100, 50, 25, 10)
    }
    assert set(plan().protocols) == PROTOCOLS


def test_the_headline_at_ten_milliseconds_is_of_both_queries_and_of_no_other_interval() -> None:
    runs = []
    for cell, factor in ((TEN, 3.0), (Cell("q8", 10), 2.0), (HUNDRED, 1.0)):
        runs += [measured(cell, "marker", repeat, 10, 20) for repeat in range(3)]
        runs += [
            measured(cell, "transaction", repeat, 10 * factor, 40 * factor) for repeat in range(3)
        ]
    by_name = {figure.name: figure for figure in figures(plan(), runs)}
    for share, value in (("p50", 2.0), ("p99", 4.0)):
        headline = by_name[f"headline.marker_vs_transaction_{share}_10ms"]
        assert (headline.value, len(headline.repeats)) == (value, 3)
        assert "Q8 every 10 ms" in headline.meaning
        assert by_name[f"log.Q8.10ms.marker_vs_transaction_{share}"].value == value
    assert by_name["headline.marker_vs_transaction_p50_min"].value == 1.0


def test_a_missing_and_a_repeated_row_are_told_apart_from_a_right_answer() -> None:
    load = load_of("q8", 500, 1.0, 7, 10)
    assert check("q8", load, []).different > 0
    wrong = check("q4", load_of("q4", 500, 1.0, 7, 10), [Seen(0, [(10, 1.0, 2, 0)])])
    assert wrong.differences[0] == "category 10: row 2 came after row 0"
    assert wrong.different > 1
