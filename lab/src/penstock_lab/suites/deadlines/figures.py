"""Figures of the deadlines suite from its runs. Pure; a run that does not count enters none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock_lab.experiment.figures import (
    SHARE,
    Figure,
    Goal,
    medians,
    middle,
    ordered,
    sender_lag,
    verdict_counts,
)
from penstock_lab.experiment.search import Searched, highest_rate
from penstock_lab.percentiles import median
from penstock_lab.suites.deadlines.baseline_figures import against_baselines, middle_of
from penstock_lab.suites.deadlines.cells import ALL, SPARE_SHARE, Cell, Plan
from penstock_lab.suites.deadlines.modes import OURS
from penstock_lab.suites.deadlines.rates import searches_of
from penstock_lab.suites.deadlines.record import Record
from penstock_lab.suites.deadlines.shock_figures import shock_figures
from penstock_lab.suites.deadlines.singles import (
    Single,
    Value,
    batch_throughput,
    mean,
    misses,
    of_latency,
    p50,
    p95,
    p99,
    singles,
)

MISS_GOAL = 0.01
PAPERS = ("zstream", "lmstream")
UNASKED = "unasked_share"
ROW = "an input row, intended send to visible"
FIGURES: tuple[tuple[str, str, str, Value], ...] = (
    ("p50_ms", "ms", f"{ROW}, median", p50),
    ("p95_ms", "ms", f"{ROW}, 95 of 100", p95),
    ("p99_ms", "ms", f"{ROW}, 99 of 100", p99),
    ("mean_ms", "ms", f"{ROW}, in the mean", mean),
    ("miss_ratio", SHARE, "input rows that were visible after their deadline", misses),
    ("throughput", "rows/s", "rows per second of batch time, cut to marker", batch_throughput),
    (
        *("cpu_us_per_row", "us", "processor time of driver and server per input row"),
        lambda single: single.query_run.cpu_us_per_row,
    ),
    (
        *("result_p95_ms", "ms", "a result, from its latest input's intended send, 95 of 100"),
        lambda single: of_latency(single.query_run.results, "p95"),
    ),
    (
        *("batch_max_p95_ms", "ms", "the longest latency of each batch, 95 of 100"),
        lambda single: of_latency(single.query_run.batch_max, "p95"),
    ),
    (
        *("batch_max_mean_ms", "ms", "the longest latency of each batch, in the mean"),
        lambda single: single.query_run.batch_max_mean_ms,
    ),
)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per query, deadline, traffic and mode; then rates, shocks, the sender and the headline."""
    compared = singles(plan, [record for record in records if record.kind == "compared"])
    spare = singles(plan, [record for record in records if record.kind == "spare"])
    made: list[Figure] = []
    for cell in ordered(single.cell for single in compared):
        here = [single for single in compared if single.cell == cell]
        for mode in ordered(single.system for single in here):
            mine = [single for single in here if single.system == mode]
            made += medians(f"{cell.name}.{mode}", mine, FIGURES)
    judged = [record.run for record in records if record.kind != "sustain"]
    return [
        *made,
        *sustained(plan, records),
        *shock_figures(records),
        *sender_lag(judged),
        *against_baselines(plan, compared),
        *missed_with_spare(spare),
        *estimator_errors(compared),
        *admission_figures(compared),
        *verdict_counts([record.run for record in records], judged),
    ]


def sustained(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """The highest rate that held, of each mode and deadline it was looked for."""
    made = []
    for (mode, deadline_s), tried in searches_of(plan, records).items():
        searched = Searched(Cell(ALL, deadline_s, "high"), mode, tried)
        made.append(highest_rate(f"{ALL}.{deadline_s:g}s.{mode}.sustained_per_s", searched))
    return made


def missed_with_spare(spare: Sequence[Single]) -> list[Figure]:
    """Misses at 70 % of our own sustainable rate at each deadline, worst query and deadline."""
    each: list[tuple[float, tuple[float, ...], Cell]] = []
    for cell in ordered(single.cell for single in spare):
        ratios = tuple(
            ratio
            for single in spare
            if single.cell == cell and single.is_counted and (ratio := misses(single)) is not None
        )
        if ratios:
            each.append((middle_of(ratios), ratios, cell))
    if not each:
        return []
    worst, repeats, cell = max(each, key=lambda item: item[0])
    sentence = (
        f"input rows after their deadline at {SPARE_SHARE:.0%} of the rate that {OURS} holds with "
        f"that deadline, worst: {cell.query}, {cell.deadline_s:g} s"
    )
    goal = Goal("under", MISS_GOAL)
    return [Figure("headline.miss_ratio_70", SHARE, sentence, worst, repeats, goal)]


def estimator_errors(compared: Sequence[Single]) -> list[Figure]:
    """Errors of the estimators over the same batches: medians over runs and queries, in percent."""
    ours = [single for single in compared if single.system == OURS and single.is_counted]
    off = {
        name: [
            single.query_run.estimates_off[name] * 100
            for single in ours
            if name in single.query_run.estimates_off
        ]
        for name in ("ours", *PAPERS)
    }
    sentence = "median absolute error of cut to visible, of"
    made = middle("headline.estimator_error_ours", "%", f"{sentence} our estimator", off["ours"])
    papers = {name: value for name in PAPERS if (value := median(off[name])) is not None}
    if papers:
        best = min(papers, key=lambda name: papers[name])
        words = f"{sentence} the better of the papers' two: {best}"
        made += middle("headline.estimator_error_paper", "%", words, off[best])
    return made


def unasked_share(account: Mapping[str, float]) -> dict[str, float]:
    """Moments that passed while Spark asked nothing, of a query's batches; empty without any."""
    batches, unasked = account.get("batches"), account.get("moments_unasked")
    return {UNASKED: unasked / batches} if batches and unasked is not None else {}


def admission_figures(compared: Sequence[Single]) -> list[Figure]:
    """The server's decisions in our runs: how late they came, how many had a moment that passed
    before Spark asked, and what they cost, at worst."""
    accounts = [s.query_run.admission for s in compared if s.system == OURS and s.is_counted]
    ours = [{**each, **unasked_share(each)} for each in accounts]
    made = []
    for key, unit, sentence, goal in (
        ("moment_late_ms_p95", "ms", "cut after its moment, 95 of 100", Goal("at most", 10.0)),
        (UNASKED, SHARE, "moments that passed while Spark asked nothing, of its batches", None),
        ("decision_share", SHARE, "decisions, of batch time", Goal("under", 0.01)),
    ):
        values = tuple(account[key] for account in ours if key in account)
        if values:
            words = f"{sentence}; worst of the runs of {OURS}"
            made.append(Figure(f"admission.{key}", unit, words, max(values), values, goal))
    return made
