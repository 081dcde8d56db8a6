"""Figures of the deadlines suite from its runs. Pure; a run that does not count enters none.

Ours is compared, query by query, with the better of the two baselines: the one whose median over
the repeats is better. A ratio is taken within a repeat, and of those the median is the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Measured
from penstock_lab.experiment.search import Searched, tried_of
from penstock_lab.experiment.together import QueryRun
from penstock_lab.percentiles import median
from penstock_lab.suites.deadlines_cells import (
    BASELINES,
    MODES,
    OURS,
    SPARE_SHARE,
    Cell,
    Plan,
)
from penstock_lab.suites.deadlines_runs import Record
from penstock_lab.suites.deadlines_shocks import shock_figures

P95_GOAL, MEAN_GOAL, MISS_GOAL = 34.0, 48.0, 0.01
PAPERS = ("zstream", "lmstream")


class Single(Measured[Cell], frozen=True, kw_only=True):
    """One query of a run, as its cell."""

    query_run: QueryRun


Value = Callable[[Single], float | None]


def singles(plan: Plan, records: Sequence[Record]) -> list[Single]:
    """Every query of every compared run; a mode that knows no deadline is held against each."""
    split = []
    for record in records:
        mode = MODES[record.system]
        is_blind = mode.policy is None and not mode.is_timed
        for deadline_s in plan.deadlines_s if is_blind else (record.cell.deadline_s,):
            for query, query_run in record.queries.items():
                cell = Cell(query, deadline_s, record.cell.traffic)
                split.append(Single(cell, query_run.run, record.kind, query_run=query_run))
    return split


def of_latency(latency: Latencies | None, key: str) -> float | None:
    return None if latency is None else float(getattr(latency, key))


def p50(single: Single) -> float | None:
    return of_latency(single.run.latency, "p50")


def p95(single: Single) -> float | None:
    return of_latency(single.run.latency, "p95")


def p99(single: Single) -> float | None:
    return of_latency(single.run.latency, "p99")


def mean(single: Single) -> float | None:
    return single.query_run.mean_ms


def batch_throughput(single: Single) -> float | None:
    return single.query_run.throughput


def misses(single: Single) -> float | None:
    return single.query_run.miss_ratios.get(f"{single.cell.deadline_s:g}")


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
    """The highest rate that held, of each mode it was looked for."""
    made = []
    for mode in plan.searched:
        mine = [r.run for r in records if r.kind == "sustain" and r.system == mode]
        if mine:
            searched = Searched(Cell("all", plan.longest_s, "high"), mode, tried_of(mine))
            how = ", ".join(f"{tried.rate:,} {tried.how}" for tried in searched.tried)
            name = f"all.{plan.longest_s:g}s.{mode}.sustained_per_s"
            sentence = f"highest rate that held: {how}"
            made.append(Figure(name, "events/s", sentence, float(searched.held)))
    return made


def by_repeat(singles_here: Sequence[Single], mode: str, value: Value) -> dict[int, float]:
    return {
        single.repeat: number
        for single in singles_here
        if single.system == mode and single.is_counted and (number := value(single))
    }


def better_baseline(
    here: Sequence[Single], value: Value, *, is_less_better: bool = True
) -> dict[int, float]:
    """The numbers, by repeat, of the baseline whose median is better."""
    each = [numbers for mode in BASELINES if (numbers := by_repeat(here, mode, value))]
    choose = min if is_less_better else max
    return choose(each, key=lambda numbers: median(list(numbers.values())) or 0.0, default={})


def ratios_to_baseline(
    compared: Sequence[Single], value: Value, *, is_less_better: bool = True
) -> dict[str, tuple[float, ...]]:
    """By query, ours over theirs in each repeat in which both count."""
    made = {}
    for query in ordered(single.cell.query for single in compared):
        here = [single for single in compared if single.cell.query == query]
        ours = by_repeat(here, OURS, value)
        theirs = better_baseline(here, value, is_less_better=is_less_better)
        each = tuple(ours[repeat] / theirs[repeat] for repeat in ours if repeat in theirs)
        if each:
            made[query] = each
    return made


def middle_of(each: tuple[float, ...]) -> float:
    return median(each) or 0.0


def against_baselines(plan: Plan, compared: Sequence[Single]) -> list[Figure]:
    """DB-EDF against the better of SB-FIFO and SB-FAIR: high traffic, the longest deadline."""
    here = [
        single
        for single in compared
        if single.cell.traffic == "high" and single.cell.deadline_s == plan.longest_s
    ]
    at = f"{OURS} against the better of {' and '.join(BASELINES)}, {plan.longest_s:g} s"
    made = []
    for name, value, bound in (("p95", p95, P95_GOAL), ("mean", mean, MEAN_GOAL)):
        ratios = ratios_to_baseline(here, value)
        if ratios:
            query, best = min(ratios.items(), key=lambda item: middle_of(item[1]))
            lower = tuple((1 - ratio) * 100 for ratio in best)
            sentence = f"{name} lower by, {at}, best query: {query}"
            goal = Goal("at least", bound)
            value_here = (1 - middle_of(best)) * 100
            made.append(
                Figure(f"headline.{name}_reduction", "%", sentence, value_here, lower, goal)
            )
    ratios = ratios_to_baseline(here, p95)
    if ratios:
        query, worst = max(ratios.items(), key=lambda item: middle_of(item[1]))
        sentence, goal = f"p95, {at}, ours over theirs, worst query: {query}", Goal("at most", 1.0)
        name = "headline.worst_query_ratio"
        made.append(Figure(name, "x", sentence, middle_of(worst), worst, goal))
    ratios = ratios_to_baseline(here, batch_throughput, is_less_better=False)
    if ratios:
        query, least = min(ratios.items(), key=lambda item: middle_of(item[1]))
        sentence, goal = (
            f"throughput, {at}, ours over theirs, least: {query}",
            Goal("at least", 1.0),
        )
        name = "headline.throughput_ratio"
        made.append(Figure(name, "x", sentence, middle_of(least), least, goal))
    return made


def missed_with_spare(spare: Sequence[Single]) -> list[Figure]:
    """Misses at 70 % of our own sustainable rate, worst query and deadline."""
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
        f"input rows after their deadline at {SPARE_SHARE:.0%} of the rate that {OURS} holds, "
        f"worst: {cell.query}, {cell.deadline_s:g} s"
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


def admission_figures(compared: Sequence[Single]) -> list[Figure]:
    """The server's decisions in our runs: how late they came and what they cost, at worst."""
    ours = [s.query_run.admission for s in compared if s.system == OURS and s.is_counted]
    made = []
    for key, unit, sentence, goal in (
        ("moment_late_ms_p95", "ms", "cut after its moment, 95 of 100", Goal("at most", 10.0)),
        ("decision_share", SHARE, "decisions, of batch time", Goal("under", 0.01)),
    ):
        values = tuple(account[key] for account in ours if key in account)
        if values:
            words = f"{sentence}; worst of the runs of {OURS}"
            made.append(Figure(f"admission.{key}", unit, words, max(values), values, goal))
    return made
