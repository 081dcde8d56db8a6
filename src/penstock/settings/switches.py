"""Settings of Spark's own that shorten a micro-batch and change no answer, once.

`session` and `attach` make them where the user has not set them; the settings page tells what each
takes away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Scope = Literal["anywhere", "in one JVM", "new JVM"]
"""`in one JVM`: only for a `local` master; `new JVM`: the same, and only for `session`, which
starts it."""

HEAP_KEY = "spark.driver.memory"
COLLECTOR_KEY = "spark.driver.extraJavaOptions"
SOCKET_KEY = "spark.python.unix.domain.socket.enabled"
CLASSES = "-XX:MetaspaceSize=512m"
"""Java collects for the sake of its classes when they take this much: by itself first at 21 MB,
then at five thirds of what there was, which one query does five times and several do more often."""
FIRST_HEAP = "-XX:InitialRAMPercentage=25"
"""The heap has its size from the start where that is at most a quarter of the machine's memory. By
itself Java begins with a 64th. What a batch has broadcast lives until a collection of young objects
finds it unused, and so outlives it: in such a heap the part for old objects is full of garbage
after a minute."""
# Java refuses to start with two collectors, whoever has named them, and takes ours of two sizes.
# The path of a socket, which is in Java's temporary folder, may not be long.
NAMED_IN = {
    HEAP_KEY: re.compile(r"-Xmx\w"),
    COLLECTOR_KEY: re.compile(
        r"-XX:(\+Use\w+GC\b|(MetaspaceSize|MaxMetaspaceSize|InitialRAMPercentage)=)"
    ),
    SOCKET_KEY: re.compile(r"-Djava\.io\.tmpdir="),
}
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
DEFAULT_OPTIONS_KEY = "spark.driver.defaultJavaOptions"


OF_A_BATCH = (
    "not measured apart; the first six here, and RocksDB's statistics not reset, together: an "
    "aggregation's batch 155 to 150 ms, one over windows 125 to 116, a join's 230 to 216"
)
OF_THE_JVM = (
    "not measured apart; page size, heap and collector together: an aggregation's batch 150 to "
    "128 ms, one over windows 116 to 117, a join's 216 to 192"
)
OF_THE_SIZES = (
    "six queries one after the other in 95 s, one run each, 6 full collections of 31 to 310 ms "
    "without them and none with them"
)


class Switch(msgspec.Struct, frozen=True):
    """One setting of Spark's, the value we give it, and why."""

    name: str
    value: str
    spark: str
    """Spark's own value; empty where it has none, or chooses one."""
    doc: str
    """What the setting takes off a batch, and what is lost with it."""
    effect: str
    """What was measured of it; the settings page says under which conditions."""
    scope: Scope = "anywhere"
    needs_our_commit: bool = False
    """Whether it leaves out a check that only a commit of ours makes too."""


SWITCHES = (
    Switch(
        "spark.sql.streaming.join.stateFormatVersion", "3", "2",
        "a join keeps its state in one store per partition instead of four; a checkpoint that is "
        "there keeps its own version",
        OF_A_BATCH,
        needs_our_commit=True,
    ),
    Switch(
        "spark.sql.streaming.stateStore.commitValidation.enabled", "false", "true",
        "no question to the driver per store and batch; a commit of ours waits for every piece of "
        "state by itself",
        OF_A_BATCH,
        needs_our_commit=True,
    ),
    Switch(
        "spark.sql.ui.explainMode", "simple", "formatted",
        "the text of a plan, made for the UI in every batch, is short",
        OF_A_BATCH,
    ),
    Switch(
        "spark.sql.codegen.cache.maxEntries", "2000", "100",
        "generated classes of a dozen queries fit in; more of them stay in memory",
        OF_A_BATCH,
    ),
    Switch(
        "spark.broadcast.compress", "false", "true",
        "what is broadcast stays in this JVM, and needs no compression",
        OF_A_BATCH,
        "in one JVM",
    ),
    Switch(
        "spark.broadcast.checksum", "false", "true",
        "the same for its checksums",
        OF_A_BATCH,
        "in one JVM",
    ),
    Switch(
        "spark.buffer.pageSize", "1m", "",
        "a task's hash map takes a page of memory that the collector has not to treat as huge, as "
        "it has those that Spark chooses by heap and cores; a larger row gets a page of its own",
        OF_THE_JVM,
        "in one JVM",
    ),
    Switch(
        SOCKET_KEY, "true", "false",
        "rows go to and from Python workers by a Unix socket, where a small batch has no delayed "
        "acknowledgement of TCP to wait for",
        "measured otherwise: busy cores, an aggregate in a Python worker, one row a batch, the "
        "least of 40 batches in each of two runs: 130 and 133 to 83 and 90 ms",
        "new JVM",
    ),
    Switch(
        HEAP_KEY, "3g", "1g",
        "room for what a batch throws away, so that collections are rare",
        OF_THE_JVM,
        "new JVM",
    ),
    Switch(
        COLLECTOR_KEY, f"-XX:+UseParallelGC {FIRST_HEAP} {CLASSES}", "",
        "the collector with the least work per allocation, and pauses that a heap of this size "
        "keeps short; room for old objects and for classes from the start, so that full "
        "collections, for which a batch waits up to 300 ms, come every few minutes, and not "
        "several in the first one. More of the heap is in use for it",
        OF_THE_JVM + "; the two sizes later: " + OF_THE_SIZES,
        "new JVM",
    ),
)  # fmt: skip


def switches_for(
    user_conf: Mapping[str, str],
    *,
    is_local: bool,
    starts_jvm: bool,
    has_our_commit: bool,
    environ: Mapping[str, str],
) -> dict[str, str]:
    """The settings to add to those the user has made, which stay."""
    scopes = {"anywhere"} | ({"in one JVM"} if is_local else set())
    added = {
        switch.name: switch.value
        for switch in SWITCHES
        if switch.name not in user_conf
        and switch.scope in scopes
        and (has_our_commit or not switch.needs_our_commit)
    }
    return added | (jvm_switches(user_conf, environ) if is_local and starts_jvm else {})


def jvm_switches(user_conf: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of a JVM that is to be started, unless Java's options have them."""
    java_options = " ".join(
        [
            *(environ.get(name, "") for name in JAVA_VARIABLES),
            user_conf.get(DEFAULT_OPTIONS_KEY, ""),
            user_conf.get(COLLECTOR_KEY, ""),
        ]
    )
    made = {*user_conf, *(key for key, named in NAMED_IN.items() if named.search(java_options))}
    if "SPARK_DRIVER_MEMORY" in environ:
        made.add(HEAP_KEY)
    return {
        switch.name: switch.value
        for switch in SWITCHES
        if switch.scope == "new JVM" and switch.name not in made
    }


def unmade_switches(
    user_conf: Mapping[str, str],
    *,
    are_made: bool,
    is_local: bool,
    has_our_commit: bool,
    environ: Mapping[str, str],
) -> dict[str, str]:
    """For each switch that `session` leaves as it is though it would do for the job, by its name:
    what stands in the way."""
    added = switches_for(
        user_conf,
        is_local=is_local,
        starts_jvm=True,
        has_our_commit=has_our_commit,
        environ=environ,
    )
    in_the_way = {}
    for switch in SWITCHES:
        if not (is_local or switch.scope == "anywhere"):
            continue
        if switch.needs_our_commit and not has_our_commit:
            continue
        if switch.name in user_conf:
            if user_conf[switch.name] != switch.value:
                in_the_way[switch.name] = f"it is {user_conf[switch.name]}"
        elif switch.name not in added:
            in_the_way[switch.name] = "an option for Java has another"
        elif not are_made:
            in_the_way[switch.name] = "switches are not to be made"
    return in_the_way
