"""Mechanisms that shorten a batch, each with the settings that turn it off alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.errors import BadCall
from penstock.settings import plugin
from penstock.settings.setting import Setting

OURS = "penstock"
"""A run with every mechanism on."""


class Mechanism(msgspec.Struct, frozen=True):
    """One mechanism: the setting that turns it off, and whether only a new JVM takes that."""

    setting: Setting
    off: str
    needs_jvm: bool = False

    @property
    def conf(self) -> dict[str, str]:
        return {self.setting.name: self.off}


MECHANISMS: Mapping[str, Mechanism] = {
    "hadoopConf": Mechanism(plugin.BATCH_HADOOP_CONF, "spark", needs_jvm=True),
    "switches": Mechanism(plugin.BATCH_SWITCHES, "false", needs_jvm=True),
    "watermark": Mechanism(plugin.BATCH_WATERMARK, "spark"),
    "eviction": Mechanism(plugin.EVICTION, "spark"),
    "panes": Mechanism(plugin.WINDOWS, "spark"),
    "inline": Mechanism(plugin.INLINE_BYTES, "0"),
    "commit": Mechanism(plugin.COMMIT_MODE, "sync"),
}


def mechanism_of(name: str) -> Mechanism:
    if name not in MECHANISMS:
        raise BadCall(
            f"there is no mechanism {name!r} to leave out; there is {', '.join(MECHANISMS)}",
            code="unknown_mechanism",
        )
    return MECHANISMS[name]


def conf_without(name: str) -> dict[str, str]:
    """Settings of a run that lacks this mechanism; none of the run that has all."""
    return {} if name == OURS else mechanism_of(name).conf


def sessions_of(without: Sequence[str]) -> list[tuple[str, ...]]:
    """Runs by the JVM they share: everything, with what a query alone can lack, then each of those
    that take a JVM of their own."""
    shared = (OURS, *(name for name in without if not mechanism_of(name).needs_jvm))
    return [shared, *((name,) for name in without if mechanism_of(name).needs_jvm)]
