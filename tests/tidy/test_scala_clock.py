"""One file of the plug-in reads the clock and pauses; the others are given a Clock, but for few."""

from __future__ import annotations

import re

from support.sources import ROOT, lines_of, scala_files, short

CLOCK = "Clock.scala"
MACHINE_CLOCK = "Clock.System"
# Made by Spark by name, or for each task, with no clock to hand; the owner of all that is open in a
# JVM; and what only tests use. Others are given a clock.
NAMES_THE_MACHINE = {
    f"{name}.scala"
    for name in (
        "DeadlinePool",
        "DelayedFileSystem",
        "ExecutorPart",
        "Failpoint",
        "JvmResources",
        "SubstreamReader",
        "TaskHints",
        "TaskWriter",
    )
}
# Reading the time, pausing, and waits that end by themselves, by whatever name Java has them.
READS_OR_PAUSES = re.compile(
    r"System\.(nanoTime|currentTimeMillis)|Instant\.now|Thread\.sleep|TimeUnit\.\w+\.sleep"
    r"|parkNanos|\bwait\([^)]|\.(await|poll|get|tryAcquire|join)\([^()]*TimeUnit\."
    r"|scheduleAt|scheduleWith|awaitTermination"
)


def test_only_the_clock_of_the_plug_in_reads_the_time_and_pauses() -> None:
    sources = [path for path in scala_files() if path.is_relative_to(ROOT / "jvm" / "src")]
    assert any(path.name == CLOCK for path in sources)
    wrong = [
        f"{short(path)}:{number}: {line.strip()}"
        for path in sources
        if path.name != CLOCK
        for number, line in enumerate(lines_of(path), 1)
        if READS_OR_PAUSES.search(line)
    ]
    assert not wrong


def test_no_further_file_names_the_clock_of_the_machine_itself() -> None:
    sources = [path for path in scala_files() if path.is_relative_to(ROOT / "jvm" / "src")]
    named = {path.name for path in sources if MACHINE_CLOCK in "\n".join(lines_of(path))}
    assert "JvmResources.scala" in named, "where the clock comes from that others are given"
    assert named == NAMES_THE_MACHINE
