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
# Java refuses to start with two collectors, whoever has named them.
NAMED_IN = {HEAP_KEY: re.compile(r"-Xmx\w"), COLLECTOR_KEY: re.compile(r"-XX:\+Use\w+GC\b")}
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
DEFAULT_OPTIONS_KEY = "spark.driver.defaultJavaOptions"


class Switch(msgspec.Struct, frozen=True):
    """One setting of Spark's, the value we give it, and why."""

    name: str
    value: str
    spark: str
    """Spark's own value; empty where it has none, or chooses one."""
    doc: str
    """What the setting takes off a batch, and what is lost with it."""
    scope: Scope = "anywhere"
    needs_our_commit: bool = False
    """Whether it leaves out a check that only a commit of ours makes too."""


SWITCHES = (
    Switch(
        "spark.sql.streaming.join.stateFormatVersion", "3", "2",
        "a join keeps its state in one store per partition instead of four; a checkpoint that is "
        "there keeps its own version",
        needs_our_commit=True,
    ),
    Switch(
        "spark.sql.streaming.stateStore.commitValidation.enabled", "false", "true",
        "no question to the driver per store and batch; a commit of ours waits for every piece of "
        "state by itself",
        needs_our_commit=True,
    ),
    Switch(
        "spark.sql.ui.explainMode", "simple", "formatted",
        "the text of a plan, made for the UI in every batch, is short",
    ),
    Switch(
        "spark.sql.codegen.cache.maxEntries", "2000", "100",
        "generated classes of a dozen queries fit in; more of them stay in memory",
    ),
    Switch(
        "spark.broadcast.compress", "false", "true",
        "what is broadcast stays in this JVM, and needs no compression",
        "in one JVM",
    ),
    Switch(
        "spark.broadcast.checksum", "false", "true",
        "the same for its checksums",
        "in one JVM",
    ),
    Switch(
        "spark.buffer.pageSize", "1m", "",
        "a task's hash map takes a page of memory that the collector has not to treat as huge, as "
        "it has those that Spark chooses by heap and cores; a larger row gets a page of its own",
        "in one JVM",
    ),
    Switch(
        HEAP_KEY, "3g", "1g",
        "room for what a batch throws away, so that collections are rare",
        "new JVM",
    ),
    Switch(
        COLLECTOR_KEY, "-XX:+UseParallelGC", "",
        "the collector with the least work per allocation, and pauses that a heap of this size "
        "keeps short",
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
    """Heap and collector of a JVM that is to be started, unless Java's options have them."""
    java_options = " ".join(
        [
            *(environ.get(name, "") for name in JAVA_VARIABLES),
            user_conf.get(DEFAULT_OPTIONS_KEY, ""),
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
