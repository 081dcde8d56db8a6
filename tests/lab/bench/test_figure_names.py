"""The names of every suite's figures, which scripts read: none comes, goes or changes unseen."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from support.bench_records import (
    answers_names,
    bounded_names,
    columnar_names,
    commit_names,
    compared_names,
    deadlines_names,
    floor_names,
    log_names,
    protocols_names,
    sustain_names,
)

COUNTS = {
    "headline.answers_wrong",
    "headline.runs_failed",
    "headline.runs_stalled",
    "headline.runs_void",
}
LAG = "generator_lag_ms_p99"
COLUMNAR_TIMES = ("ms_p50", "stage_ms_p50")


def joined(*parts: Iterable[str]) -> set[str]:
    return {".".join(each) for each in product(*parts)}


def test_names_of_floor() -> None:
    assert floor_names() == {
        "spark_ms_p50",
        "spark_switches_ms_p50",
        "penstock_ms_p50",
        "headline.over_spark_ms",
        "headline.vs_spark",
        "headline.ledger_explained",
        "headline.requests_per_batch",
        "headline.visible_after_batch_ms_p50",
        "evict.spark_ms_p50",
        "evict.ours_ms_p50",
        "evict.batch_ratio",
        "append_ms_p50",
        "fetch_mb_per_s",
    }


def test_names_of_columnar() -> None:
    goals = ("cm_category", "cm_job", "lr_speed")
    cases = {f"{query}_{size}" for query in goals for size in ("30_1", "60_5", "60_10")}
    small = {f"{query}_60_5_small" for query in (*goals, "lr_count")}
    times = {f"{path}_{key}" for path in ("spark", "panes", "auto") for key in COLUMNAR_TIMES}
    assert columnar_names() == {
        *joined({*cases, *small}, {*times, "ratio", "choice"}),
        "headline.ratio_expanding_min",
        "headline.ratio_small_min",
        "headline.worst_choice",
    }


def test_names_of_the_suites_that_compare_systems() -> None:
    latencies = joined(
        ("Q1", "lr_join_30_5"),
        ("default", "tuned", "penstock"),
        ("p50_ms", "p99_ms", "past_window_p99_ms"),
    )
    ratios = joined(("Q1", "lr_join_30_5"), ("ratio_p99_vs_tuned", "ratio_p99_vs_default"))
    least = {"headline.ratio_p99_vs_tuned_min", "headline.ratio_p99_vs_default_min"}
    assert compared_names() == {*latencies, *ratios, *least, *COUNTS, LAG}


def test_names_of_sustain() -> None:
    assert sustain_names() == {"Q18.tuned.sustained_per_s"}


def test_names_of_commit() -> None:
    cells = (
        "lr_join_30_1.local.0s.on",
        "lr_join_30_1.remote20.0s.on",
        "lr_join_30_1.remote80.0s.on",
        "cm_category_60_10@1500.remote20.3s.off",
    )
    batches = {"batch_p50_ms", "batch_p99_ms", "rss_mb", "behind_batches"}
    measured = {*batches, "event_p50_ms", "event_p99_ms"}
    times = joined(cells, ("default", "zstream", "tuned", "asyncckpt", "full"), measured)
    grown = joined(
        ("lr_join_30_1.local.0s.on",), ("full", "default"), ("batch_ms_growth", "batch_ms_spike")
    )
    rates = joined(("lr_join_30_1.local.0s.on",), ("tuned", "full"), ("sustained_per_s",))
    assert commit_names() == {
        *times,
        *grown,
        *rates,
        LAG,
        "headline.event_p99_ratio_local_min",
        "headline.event_p99_ratio_remote20_min",
        "headline.event_p99_ratio_remote80_min",
        "headline.batch_p99_ratio_max",
        "headline.sustainable_ratio",
        "headline.batch_ms_growth",
        "headline.memory_full_over_sync",
        *COUNTS,
    }


def test_names_of_deadlines() -> None:
    cells = joined(("lr_join_30_1", "lr_speed_30_1", "lr_count_30_1"), ("1s.high", "5s.high"))
    rows = {"p50_ms", "p95_ms", "p99_ms", "mean_ms", "miss_ratio", "throughput", "cpu_us_per_row"}
    beside = {"result_p95_ms", "batch_max_p95_ms", "batch_max_mean_ms"}
    modes = ("sb-fifo", "sb-fair", "db-edf", "db-rdas", "asap")
    backlog = ("first_visible_s", "first_batch_rows", "longest_batch_s", "back_s")
    assert deadlines_names() == {
        *joined(cells, modes, {*rows, *beside}),
        *joined(("all.5s",), ("sb-fifo", "sb-fair", "db-edf"), ("sustained_per_s",)),
        *joined(("burst",), ("sb-fair", "asap", "db-edf"), ("back_s", "worst_ms")),
        *joined(("backlog",), ("asap", "db-edf"), backlog),
        *joined(("beside",), ("sb-fair", "db-edf"), ("p95_ms", "miss_ratio")),
        LAG,
        "admission.moment_late_ms_p95",
        "admission.decision_share",
        "headline.p95_reduction",
        "headline.mean_reduction",
        "headline.worst_query_ratio",
        "headline.throughput_ratio",
        "headline.miss_ratio_70",
        "headline.estimator_error_ours",
        "headline.estimator_error_paper",
        *COUNTS,
    }


def test_names_of_bounded() -> None:
    measured = {
        *("mean_ms", "p50_ms", "p99_ms", "batch_max_mean_ms", "batch_max_ms", "batch_rows"),
        *("growth_ms_per_s", "throughput"),
    }
    assert bounded_names() == {
        *joined(("lr_join_30_5",), ("static", "slide"), measured),
        *joined(("lr_join_30_tumbling",), ("static", "running-mean"), measured),
        *joined(("lr_join_30_5@16000",), ("slide",), measured),
        *joined(("lr_join_30_5@16000",), ("static", "slide"), ("past_growth_ms_per_s",)),
        "lr_join_30_5.static_fails_at",
        "headline.mean_reduction_sliding",
        "headline.mean_reduction_tumbling",
        LAG,
        *COUNTS,
    }


def test_names_of_log() -> None:
    appends = joined(
        ("embedded", "jetstream"),
        ("100B", "16KiB", "128KiB"),
        ("w1", "w16"),
        ("append_per_s", "append_ms_p50", "append_ms_p99"),
    )
    over_http = joined(
        ("gateway",), ("100B", "16KiB"), ("w1", "w16", "w200"), ("append_per_s", "append_ms_p99")
    )
    deliveries = joined(("embedded", "jetstream"), ("deliver_ms_p50", "deliver_ms_p99"))
    plain = {
        "tag_read_few_mb_per_s",
        "tag_read_many_mb_per_s",
        "start_large_cold_ms",
        "start_small_cold_ms",
        "start_large_cold_open_ms",
        "start_small_cold_open_ms",
        "start_warm_ratio",
        "start_open_ratio",
        "recovery_without_ms",
        "recovery_with_ms",
        "recovery_log_ms",
        "recovery_log_ratio",
    }
    summed = {"tag_read_ratio", "start_ratio", "recovery_ratio"}
    assert log_names() == {
        *appends,
        *over_http,
        "gateway.crowd_ms_p99",
        *deliveries,
        *plain,
        *joined(("headline",), summed),
        *joined(("jetstream",), {*plain, *summed}),
    }


def test_names_of_protocols() -> None:
    protocols = ("marker", "transaction", "aligned", "unsafe")
    cells = ("log.Q4.10ms", "log.Q8.100ms")
    assert protocols_names() == {
        *joined(cells, protocols, ("p50_ms", "p99_ms", "commits_per_s")),
        *joined(cells, ("marker_vs_transaction_p50", "marker_vs_transaction_p99")),
        LAG,
        "headline.marker_vs_transaction_p50_10ms",
        "headline.marker_vs_transaction_p99_10ms",
        "headline.marker_vs_transaction_p50_min",
        "headline.aligned_vs_marker_p50_max",
        "headline.marker_vs_unsafe_p50_max",
        *COUNTS,
    }


def test_names_of_answers() -> None:
    queries = ("Q4", "replay.cm_job_60_5")
    assert answers_names() == {
        *joined(queries, ("events", "batches", "rows", "different")),
        "headline.answers_wrong",
        "headline.queries_failed",
    }
