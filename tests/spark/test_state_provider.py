"""The contract of a state store provider: Spark's own two, and ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.memory_folder import memory_folder
from support.no_direct_reads import launcher
from support.suites import Result, Suite, build

STOCK = ("hdfs", "rocksdb", "rocksdb-families-changelog", "rocksdb-changelog-v2")
UNQUEUED = ("ours-unqueued", "ours-unqueued-changelog-v2")
QUEUED = (
    *("ours", "ours-families-changelog", "ours-changelog", "ours-changelog-v2"),
    *("ours-families-v2", "ours-asyncckpt"),
)
JVMS = 3
"""They mostly wait, so there is one more than cores."""
GROUPS = (
    *("store", "version", "metric", "column family", "fault", "zombie", "held"),
    *("dead thread", "local space", "compaction", "piece life", "limits", "news", "isolation"),
    *("arrival", "run", "retry", "stall", "cache", "cached store", "lookahead", "prefetch"),
    *("token", "relay", "admission", "device plans", "interpreters", "plan rules", "spark members"),
    *("eviction", "watermark", "outside data", "kafka"),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """What every case found for every variant, in JVMs that take the next group when free."""
    folder = tmp_path_factory.mktemp("contract")
    java, classes = build("--java"), build("--suite")
    claims = folder / "claims"
    claims.mkdir()
    # RocksDB waits for its disk in every commit.
    with memory_folder(folder) as memory:
        suites = [
            Suite([], java, classes, folder / str(number), claims, memory / str(number))
            for number in range(JVMS)
        ]
        try:
            return [result for suite in suites for result in suite.results()]
        finally:
            for suite in suites:
                suite.stop()


def of(results: list[Result], variant: str, group: str) -> list[Result]:
    return [r for r in results if r["variant"] == variant and r["group"] == group]


def check(results: list[Result], variant: str, group: str) -> None:
    of_group = of(results, variant, group)
    assert of_group, f"the suite has no group {group} for {variant}"
    broken = [f"{r['case']}: {r['error']}" for r in of_group if not r["ok"]]
    assert not broken, "\n\n".join(broken)
    if all(r["skipped"] for r in of_group):
        why = "; ".join(sorted({r["skipped"] for r in of_group}))
        pytest.skip(f"skipped, because {why}")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("variant", STOCK)
def test_a_provider_of_spark_keeps_the_contract(
    results: list[Result], variant: str, group: str
) -> None:
    check(results, variant, group)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("variant", UNQUEUED)
def test_our_provider_keeps_the_contract_with_nothing_held_back(
    results: list[Result], variant: str, group: str
) -> None:
    check(results, variant, group)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("variant", QUEUED)
def test_our_provider_keeps_the_contract_when_commits_are_held_back(
    results: list[Result], variant: str, group: str
) -> None:
    check(results, variant, group)


def test_no_clause_is_skipped_for_every_variant_of_ours(results: list[Result]) -> None:
    ran = {r["case"] for r in results if r["variant"] in QUEUED and not r["skipped"]}
    direct = {r["case"] for r in results if r["variant"] in UNQUEUED and not r["skipped"]}
    assert {r["case"] for r in results} - ran - direct == set()


def test_every_variant_is_named_here(results: list[Result]) -> None:
    assert {r["variant"] for r in results} == {*STOCK, *UNQUEUED, *QUEUED}
    assert {r["group"] for r in results} == set(GROUPS)


def test_a_store_with_direct_reads_stops_where_the_file_system_has_none(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    without = launcher(work)
    if without is None:
        pytest.skip("skipped, because a process may not mount a ramfs of its own here")
    case = "ours-changelog:cached store:direct_reads_are_made_or_a_store_stops"
    java, classes = build("--java"), build("--suite")
    # Told so, the case fails where direct reads are possible after all.
    told_so = [*without, "env", "PENSTOCK_SUITE_WITHOUT_DIRECT_READS=1"]
    suite = Suite([case], java, classes, tmp_path / "suite", work=work, launcher=told_so)
    try:
        (result,) = suite.results()
    finally:
        suite.stop()
    assert (result["ok"], result["skipped"]) == (True, None), result["error"]
