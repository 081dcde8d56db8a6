"""A checkpoint that goes from run to run: of Spark alone, and of Penstock in every mode."""

from __future__ import annotations

import json
from pathlib import Path

from support.servers.processes import wait_until
from support.spark.take_over.job import CLEANED, NO_DATA, SKIPPING, VARIANTS
from support.spark.take_over.run import TakenOver, closed_by
from support.spark.three_queries.run import START_S, latest

FIRST_MODES = dict(zip(VARIANTS, ("full", "asyncckpt", "sync") * 2, strict=True))
OTHER_MODES = dict(zip(VARIANTS, ("sync", "full", "asyncckpt") * 2, strict=True))
EVICTION = {"spark.penstock.eviction": "spark"}
WATERMARK = {"spark.penstock.batch.watermark": "spark"}
PANES = {"spark.penstock.windows": "spark"}
FILES = {"spark.penstock.checkpoint.localFiles": "spark"}
# Of each query in the first run, and of the next one in the second. In each mode Hadoop writes the
# files of some query, and Penstock those of another.
SWITCHED: tuple[dict[str, str], ...] = (
    EVICTION,
    {**WATERMARK, **PANES},
    FILES,
    {**EVICTION, **WATERMARK, **PANES, **FILES},
    EVICTION,
    {**PANES, **FILES},
)
FIRST_SETTINGS = dict(zip(VARIANTS, SWITCHED, strict=True))
OTHER_SETTINGS = dict(zip(VARIANTS, (*SWITCHED[1:], SWITCHED[0]), strict=True))
WITHOUT_SWITCHES = {
    "spark.penstock.batch.switches": "false",
    "spark.penstock.batch.hadoopConf": "spark",
}


def test_a_checkpoint_of_spark_alone_is_taken_over_and_given_back(tmp_path: Path) -> None:
    """Both formats, with and without changelogs, all at once.

    files 0 to 4    Spark alone    killed when batch 4 is in the sink and not in the commits
    file 5          Penstock       killed when batch 5 is, in every mode
    files 6 and 7   Penstock       each query in another mode and with other parts of the plug-in
                                   off, to the end of the input
    the last file   Spark alone    reads the state, goes on, and reads the outputs
    """
    files = 8
    job = TakenOver(tmp_path / "job", files)
    job.give(range(5))
    job.kill_within(job.start(plain=True), 4, set(), frozenset())

    job.give(range(5, 6))
    # The source may delete what batch 5 has read when the next one is cut: so none is.
    job.give(range(6, 7), CLEANED)
    held = {name for name, mode in FIRST_MODES.items() if mode != "sync"}
    first = job.start("before_commit@5", modes=FIRST_MODES, settings=FIRST_SETTINGS)
    job.kill_within(first, 5, held, SKIPPING)
    assert job.given(CLEANED, 5).exists()
    left = set(job.local.iterdir())
    assert left

    job.give(range(6, files), *(set(VARIANTS) - {CLEANED}))
    job.give(range(7, files), CLEANED)
    job.finish(files - 1, modes=OTHER_MODES, settings=OTHER_SETTINGS, conf=WITHOUT_SWITCHES)
    assert not left & set(job.local.iterdir())

    job.give(range(files, files + 1))
    read = job.folder / "read.json"
    job.finish(files, plain=True, read=str(read), conf={NO_DATA: "true"})
    answers = json.loads(read.read_text())
    everything = job.rows(files + 1)
    for name in VARIANTS:
        assert [tuple(row) for row in answers["state"][name]] == job.open_windows(files), name
        assert answers["about"][name] == [["stateStoreSave", 2, files - 1]], name
        output = [tuple(row) for row in answers["output"][name]]
        assert output == closed_by(everything, everything), name


def test_of_two_drivers_on_one_checkpoint_the_one_that_was_outrun_stops(tmp_path: Path) -> None:
    """Without a server to fence it, and with one local folder for both."""
    names = ["v1", "v2-snapshots"]
    modes = dict.fromkeys(names, "full")
    files, held = 6, 3
    job = TakenOver(tmp_path / "job", files)
    job.give(range(held + 1), *names)
    first = job.start(f"before_commit@{held}", queries=names, modes=modes)
    try:
        job.wait_within(first, held, set(names), set())
        job.give(range(held + 1, files), *names)
        # It has cut its next batch, which the other does not know of.
        for name in names:
            entry = job.checkpoint(name) / "sources" / "0" / str(held + 1)
            wait_until(f"{entry} is there", entry.exists)
        job.finish(files - 1, queries=names, modes=modes, conf={NO_DATA: "true"})
        done = {name: (latest(job.checkpoint(name), "commits"), job.seen(name)) for name in names}
        for last, seen in done.values():
            assert last == seen.batch == files - 1
            assert seen.rows == closed_by(job.rows(files), job.rows(files))
        # What they would have collided over is gone by then, as Spark deletes what is old.
        for name in names:
            for old in range(held, files - 1):
                for log in ("offsets", "commits"):
                    (job.checkpoint(name) / log / str(old)).unlink()

        stopped = first.folder / "stopped"
        stopped.mkdir(exist_ok=True)
        (stopped / "go").touch()
        assert first.wait(START_S) == 3, first.said()[-6000:]
        assert "[penstock: two_queries]" in str(first.status()["error"])
        for name, (last, seen) in done.items():
            assert (latest(job.checkpoint(name), "commits"), job.seen(name)) == (last, seen), name
    finally:
        first.kill()
