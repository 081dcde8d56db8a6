"""In which order the files of the tests are run, and which of them need more than Python."""

from __future__ import annotations

MARKED_FOLDERS = ("spark", "cluster", "faults", "packaging")

# Files that take long, longest first: a worker that gets one at the end is left alone with it.
LONGEST_FIRST = (
    "spark/test_nexmark_queries.py",
    "spark/test_state_provider.py",
    "spark/test_queries.py",
    "spark/test_queries_on_jetstream.py",
    "spark/test_prefetch_answers.py",
    "faults/test_commit_kills.py",
    "cluster/test_losses.py",
    "faults/test_marker_kills.py",
    "faults/test_lost_state.py",
    "faults/test_random_kills.py",
    "faults/test_planted_bugs.py",
    "faults/test_driver_kills.py",
    "spark/test_late_rows.py",
    "spark/test_bench_bounded.py",
    "spark/test_bench_columnar.py",
    "spark/test_bench_paper.py",
    "spark/test_bench_prefetch.py",
    "spark/test_bench_recovery.py",
    "spark/test_operators.py",
    "spark/test_eviction.py",
    "spark/test_columnar.py",
    "cluster/test_pool.py",
    "faults/test_take_over.py",
    "faults/test_protocols.py",
    "spark/test_bench_suites.py",
    "faults/test_jetstream.py",
    "spark/test_demo.py",
    "spark/test_bench_commit.py",
    "spark/test_bench_deadlines.py",
    "spark/test_bench_devices.py",
    "spark/test_bench_floor.py",
    "cluster/test_standalone.py",
    "packaging/test_wheel.py",
    "packaging/test_submit.py",
    "spark/test_expressions.py",
    "spark/test_insisted_gpu.py",
    "spark/test_run_ends.py",
    "spark/test_examples.py",
    "spark/test_hold.py",
    "spark/test_outside_data.py",
    "faults/test_drain.py",
    "faults/test_fencing.py",
    "faults/test_server_kills.py",
)


def turn(file: str) -> int:
    """The lower, the sooner: long files, then others of the marked folders, then quick ones."""
    if file in LONGEST_FIRST:
        return LONGEST_FIRST.index(file)
    is_quick = file.partition("/")[0] not in MARKED_FOLDERS
    return len(LONGEST_FIRST) + is_quick
