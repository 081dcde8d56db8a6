"""Mechanisms that shorten a batch, each with the settings that turn it off, or on, alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.errors import BadCall
from penstock.settings import plugin
from penstock.settings.setting import Setting
from penstock.settings.switches import COLLECTOR_KEY, SWITCHES, Switch

OURS = "penstock"
"""A run with every mechanism at its default."""
EACH_SWITCH = "each-switch"
"""In place of the names of all settings of Spark's own that our sessions make."""
JAVAS_COLLECTOR = "-XX:+UseG1GC"
"""What Java takes by itself on two cores with a heap of this size."""


class Mechanism(msgspec.Struct, frozen=True):
    """One mechanism: settings that change it alone, and whether only a new JVM takes them."""

    conf: Mapping[str, str]
    needs_jvm: bool = False


def _off(setting: Setting, value: str, *, needs_jvm: bool = False) -> Mechanism:
    return Mechanism({setting.name: value}, needs_jvm)


MECHANISMS: Mapping[str, Mechanism] = {
    "hadoopConf": _off(plugin.BATCH_HADOOP_CONF, "spark", needs_jvm=True),
    "switches": _off(plugin.BATCH_SWITCHES, "false", needs_jvm=True),
    "watermark": _off(plugin.BATCH_WATERMARK, "spark"),
    "eviction": _off(plugin.EVICTION, "spark"),
    "panes": _off(plugin.WINDOWS, "spark"),
    "inline": _off(plugin.INLINE_BYTES, "0"),
    "commit": Mechanism(
        # Of commits in Spark's order the plug-in leaves the files to Hadoop too, unless it is told.
        {plugin.COMMIT_MODE.name: "sync", plugin.CHECKPOINT_LOCAL_FILES.name: "direct"}
    ),
    "localFiles": _off(plugin.CHECKPOINT_LOCAL_FILES, "spark"),
}

OFF_BY_DEFAULT: Mapping[str, Mechanism] = {
    "earlyAnswers": Mechanism({plugin.COMMIT_EARLY_ANSWERS.name: "true"}),
}
"""Mechanisms that have a price, each with the settings that turn it on alone."""

OF_A_QUERY = frozenset(
    {
        "spark.sql.streaming.join.stateFormatVersion",
        "spark.sql.streaming.stateStore.commitValidation.enabled",
        "spark.sql.ui.explainMode",
    }
)
"""Switches that Spark reads when a query starts, and not only when a JVM does."""


def _without_switch(switch: Switch) -> Mechanism:
    """Every switch but this one. Where Spark chooses a value by itself, nothing can be set in its
    place: then the others are made by name."""
    if switch.name == COLLECTOR_KEY:
        return Mechanism({switch.name: JAVAS_COLLECTOR}, needs_jvm=True)
    if switch.spark:
        return Mechanism({switch.name: switch.spark}, switch.name not in OF_A_QUERY)
    others = {other.name: other.value for other in SWITCHES if other.name != switch.name}
    return Mechanism({plugin.BATCH_SWITCHES.name: "false", **others}, needs_jvm=True)


SWITCHED: Mapping[str, Mechanism] = {switch.name: _without_switch(switch) for switch in SWITCHES}
"""The same for each setting of Spark's own, by its name in Spark."""


CHANGED: Mapping[str, Mechanism] = {**MECHANISMS, **SWITCHED, **OFF_BY_DEFAULT}
"""All that a run can differ in from one with every mechanism at its default."""


def named(without: Iterable[str]) -> tuple[str, ...]:
    """The mechanisms to leave out, each once; raises BadCall for a name that there is not."""
    names = [name for asked in without for name in (SWITCHED if asked == EACH_SWITCH else (asked,))]
    return _known(names, "leave out", (*MECHANISMS, EACH_SWITCH, *SWITCHED))


def added(names: Iterable[str]) -> tuple[str, ...]:
    """The mechanisms to turn on, each once; raises BadCall for a name that there is not."""
    return _known(names, "turn on", tuple(OFF_BY_DEFAULT))


def _known(names: Iterable[str], act: str, choices: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in choices:
            raise BadCall(
                f"there is no mechanism {name!r} to {act}; there is {', '.join(choices)}",
                code="unknown_mechanism",
            )
    return tuple(dict.fromkeys(names))


def session_conf_of(variant: str) -> dict[str, str]:
    """Settings of the session of a run that differs in this mechanism, where only its JVM can."""
    is_of_jvm = variant != OURS and CHANGED[variant].needs_jvm
    return dict(CHANGED[variant].conf) if is_of_jvm else {}


def query_conf_of(variant: str) -> dict[str, str]:
    """Settings of the query of such a run, where it can differ in it alone."""
    is_of_query = variant != OURS and not CHANGED[variant].needs_jvm
    return dict(CHANGED[variant].conf) if is_of_query else {}


def sessions_of(variants: Sequence[str]) -> list[tuple[str, ...]]:
    """Runs by the JVM they share: everything at its default, with what a query alone can differ in,
    then each of those that take a JVM of their own."""
    shared = (OURS, *(name for name in variants if not CHANGED[name].needs_jvm))
    return [shared, *((name,) for name in variants if CHANGED[name].needs_jvm)]
