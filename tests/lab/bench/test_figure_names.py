"""The names of every suite's figures, which scripts read: none comes, goes or changes unseen."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from penstock_lab.cli.bench import SUITES
from penstock_lab.suites import storage
from support.bench_records import (
    ablated_names,
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
from support.device_records import devices_names
from support.paper_records import paper_names
from support.prefetch_records import prefetch_names
from support.recovery_records import recovery_names

COUNTS = {
    "headline.answers_wrong",
    "headline.runs_failed",
    "headline.runs_stalled",
    "headline.runs_void",
}
LAG = "generator_lag_ms_p99"
COLUMNAR_PATHS = ("spark", "panes", "cpu", "auto")
COLUMNAR_TIMES = ("ms_p50", "stage_ms_p50")
WORKER_PARTS = ("boot", "init", "code", "rest", "task")


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
        "floor.penstock_ms_p50",
        "floor.step.planning_ms",
        "floor.step.build_job_ms",
        "floor.ledger_explained",
    }


def test_names_of_queries_without_mechanisms_in_floor() -> None:
    queries = ("cm_category", "lr_join")
    numbers = ("penstock_ms_p50", "step.planning_ms", "ledger_explained")
    assert ablated_names(queries, ("hadoopConf", "panes"), ("earlyAnswers",)) == {
        *joined(queries, numbers),
        *joined(queries, ("without",), ("hadoopConf_ms_p50", "panes_ms_p50")),
        *joined(queries, ("with",), ("earlyAnswers_ms_p50",)),
        *joined(queries, ("gives",), ("hadoopConf_ms", "panes_ms", "earlyAnswers_ms")),
    }


def test_names_of_columnar() -> None:
    goals = ("cm_category", "cm_job", "lr_speed")
    cases = {f"{query}_{size}" for query in goals for size in ("30_1", "60_5", "60_10")}
    small = {f"{query}_60_5_small" for query in (*goals, "lr_count")}
    times = {f"{path}_{key}" for path in COLUMNAR_PATHS for key in COLUMNAR_TIMES}
    assert columnar_names() == {
        *joined({*cases, *small}, {*times, "ratio", "choice"}),
        "headline.ratio_expanding_min",
        "headline.ratio_small_min",
        "headline.worst_choice",
        *joined(("worker",), tuple(f"{part}_ms_p50" for part in WORKER_PARTS)),
        "headline.worker_ms_p50",
    }


def test_names_of_compared() -> None:
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
        "lr_join_30_1.local.0s.off",
    )
    systems = (
        *("default", "zstream", "tuned", "tuned+files", "asyncckpt", "full", "full-replicated"),
        *("tuned-files", "plug-in-sync", "plug-in"),
    )
    batches = {"batch_p50_ms", "batch_p99_ms", "rss_mb", "behind_batches"}
    measured = {*batches, "event_p50_ms", "event_p99_ms"}
    times = joined(cells, systems, measured)
    stores = ("local", "remote20", "remote80")
    ratios = (
        *("event_p99_ratio_{}_min", "event_p99_ratio_{}_ablated"),
        *("replicated_ratio_{}", "plug_in_ratio_{}", "plug_in_ratio_{}_ablated"),
    )
    steps = ("tuned+files", "asyncckpt", "full", "plug-in-sync", "plug-in")
    places = tuple(f"lr_join_30_1.{store}.0s.step" for store in stores)
    gains = joined(places, steps, ("batch_p50_ratio", "event_p99_ratio"))
    gains |= joined(places[:1], ("tuned",), ("batch_p50_ratio", "event_p99_ratio"))
    grown = joined(
        ("lr_join_30_1.local.0s.on",), ("full", "default"), ("batch_ms_growth", "batch_ms_spike")
    )
    rates = joined(("lr_join_30_1.local.0s.on",), ("tuned", "full"), ("sustained_per_s",))
    assert commit_names() == {
        *times,
        *grown,
        *rates,
        *gains,
        LAG,
        *(f"headline.{name.format(store)}" for store in stores for name in ratios),
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
        "all.1s.db-edf.sustained_per_s",
        *joined(("burst",), ("sb-fair", "asap", "db-edf"), ("back_s", "worst_ms")),
        *joined(("backlog",), ("asap", "db-edf"), backlog),
        *joined(("beside",), ("sb-fair", "db-edf"), ("p95_ms", "miss_ratio")),
        LAG,
        "admission.moment_late_ms_p95",
        "admission.unasked_share",
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


def test_names_of_prefetch() -> None:
    latencies = {"p50_ms", "p99_ms", "p999_ms", "behind"}
    reads = {"hit_ratio", "unused_ratio", "hint_share", "block_misses_per_row", "cpu_us_per_row"}
    assert prefetch_names() == {
        *joined(("Q18.read1ms.high", "ysb.high"), ("asyncio", "prefetch"), {*latencies, *reads}),
        *joined(("Q18.read1ms.high",), ("asyncio", "prefetch"), ("read_us_per_row",)),
        *joined(
            ("Q18.read1ms",), ("lru", "asyncio-lru", "prefetch"), ("throughput", "overhead_cpu")
        ),
        "Q18.read1ms.state_over_budget",
        "adaptation.accuracy_batches",
        "adaptation.timing_batches",
        "headline.p999_ratio_min",
        "headline.p50_ratio_min",
        "headline.throughput_ratio_min",
        "headline.overhead_in_memory",
        "headline.runs_short",
        "headline.runs_behind",
        "lookup.p999_ratio_min",
        "lookup.batches_on_path",
        LAG,
        *COUNTS,
    }


def test_names_of_devices() -> None:
    cells = ("LR1T.constant@1000", "LR1T.random@200000")
    modes = (
        *("throughput-oriented", "throughput-panes"),
        *("static", "lmstream", "ours-columnar", "ours"),
    )
    shares = {"gpu_share", "columnar_share", "planning_share"}
    measured = {"mean_ms", "batch_ms", "batch_rows", *shares}
    sizes = ("4KB", "1MB")
    learned = joined(("ours", "lmstream"), ("from_high", "from_low"))
    assert devices_names() == {
        *joined(("operations",), ("sort",), ("cpu",), {f"{size}_ms" for size in sizes}),
        *joined(
            ("operations",),
            ("sort",),
            ("gpu",),
            {f"{size}_{key}" for size in sizes for key in ("ms", "transfer_ms")},
        ),
        *joined(("inflection",), ("sort",), {f"{name.replace('.', '_')}_kb" for name in learned}),
        "inflection.sort.measured_kb",
        *joined(cells, modes, measured),
        *joined(("LR1T",), ("throughput-oriented", "ours"), ("sustained_per_s",)),
        "headline.inflection_error",
        "headline.latency_reduction",
        "headline.latency_reduction_min",
        "headline.rate_ratio_best",
        "headline.rate_ratio_min",
        "headline.vs_static",
        "headline.vs_lmstream_min",
        "headline.vs_static_columnar",
        "headline.vs_lmstream_min_columnar",
        "headline.overhead",
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


def test_names_of_paper() -> None:
    protocols = ("marker", "transaction", "aligned", "unsafe")
    cells = ("log.Q4.10ms", "log.Q8.10ms")
    batches = {
        *("batch_p50_ms", "batch_p99_ms", "batch_growth", "late_share", "commit_p99_ms"),
        *("throughput_kb_per_s", "cpu_cores", "rss_mb"),
    }
    visible = {"event_p50_ms", "event_p99_ms"}
    assert paper_names() == {
        *joined(("CM1@2500",), ("default", "zstream", "asyncckpt", "full"), batches),
        *joined(("LR2",), ("default", "full"), {*batches, *visible}),
        *joined(("CM1@2500", "LR2"), ("batch_p99_ratio",)),
        *joined(
            ("CM1@2500", "LR2"),
            ("store",),
            ("checkpoint_kb", "checkpoint_ms", "ms_per_operation", "ms_per_mb"),
        ),
        *joined(("LR2",), ("default", "full"), ("sustained_per_s",)),
        "LR2.rate_per_s",
        *joined(("log",), ("Q4", "Q8"), ("rate_per_s",)),
        *joined(cells, protocols, ("p50_ms", "p99_ms", "commits_per_s")),
        *joined(cells, ("marker_vs_transaction_p50", "marker_vs_transaction_p99")),
        *joined(("recovery",), ("cold_with_ms", "cold_without_ms")),
        *joined(("recovery",), ("warm_with_ms", "warm_without_ms")),
        "headline.batch_p99_ratio_max",
        "headline.throughput_ratio_max",
        "headline.marker_vs_transaction_p50_10ms",
        "headline.marker_vs_transaction_p99_10ms",
        "headline.marker_vs_transaction_p50_min",
        "headline.aligned_vs_marker_p50_max",
        "headline.aligned_vs_marker_p99_max",
        "headline.marker_vs_unsafe_p50_max",
        "headline.recovery_cold_ratio",
        "headline.recovery_warm_ratio",
        LAG,
        *COUNTS,
    }


def test_names_of_answers() -> None:
    queries = ("Q4", "replay.cm_job_60_5")
    assert answers_names() == {
        *joined(queries, ("events", "batches", "rows", "different")),
        "headline.answers_wrong",
        "headline.queries_failed",
    }


def test_names_of_recovery() -> None:
    killed = {"driver.cold", "driver.warm", "server"}
    assert recovery_names() == {
        *joined(("spark", "penstock", "penstock-log"), {*killed, "executor"}, ("ms",)),
        *joined(("spark-archive", "penstock-bare"), {"driver.cold", "driver.warm"}, ("ms",)),
        *joined(("driver", "executor", "server"), ("ms_p50",)),
        "headline.vs_spark",
        "headline.vs_spark_warm",
        "headline.vs_spark_archive",
        "headline.archive_gives",
        "headline.answers_wrong",
        "headline.runs_failed",
    }


def test_names_of_storage(tmp_path: Path) -> None:
    rows = storage.compare(tmp_path, sizes=(100,), rounds=1)
    assert {(row.library, row.entry_bytes, row.entries_per_commit) for row in rows} == {
        *product(("lmdb", "sqlite"), (100,), (1, 16))
    }
    assert storage.Row.__struct_fields__ == (
        *("library", "entry_bytes", "entries_per_commit"),
        *("commit_ms", "commit_ms_least", "commit_ms_greatest", "read_mb_per_s"),
    )


def test_the_names_of_every_suite_are_here() -> None:
    prefix = "test_names_of_"
    named = {name.removeprefix(prefix) for name in globals() if name.startswith(prefix)}
    suites = {*(suite.module for suite in SUITES.values()), "storage"}
    assert named - {"queries_without_mechanisms_in_floor"} == suites
