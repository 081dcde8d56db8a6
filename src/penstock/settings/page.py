"""The page docs/settings.md, made from the settings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.settings import plugin
from penstock.settings.server import server_settings
from penstock.settings.setting import GIB, KIB, MIB, Setting
from penstock.settings.switches import SWITCHES, Scope

HEAD = """\
# Settings

Written by `python -m penstock.settings > docs/settings.md` from \
[`settings/server.py`](../src/penstock/settings/server.py), \
[`settings/plugin.py`](../src/penstock/settings/plugin.py) and \
[`settings/switches.py`](../src/penstock/settings/switches.py); a test compares. A value \
outside its bounds is refused by name."""


MADE: dict[Scope, str] = {
    "anywhere": "always",
    "in one JVM": "for a `local` master",
    "new JVM": "by `session`, for a `local` master",
}


def settings_page() -> str:
    """The whole page, as Markdown."""
    of_server = "Set at its start: `penstock serve --set NAME=VALUE`, as often as needed."
    of_plugin = (
        "Set in the Spark session, or with `spark-submit --conf`. A name that begins with "
        "`spark.penstock.` and is not here is refused, by the driver at its start and by a query. "
        "How commits use them: [docs/commit.md](commit.md)."
    )
    of_format = (
        f"Given with `.option(NAME, VALUE)`. {_option_names(plugin.CONNECTION_SETTINGS)} may be "
        "given here too, and come before the session's. An unknown option is refused. So may "
        f"{_option_names(plugin.TERM_SETTINGS)}, and to a source of any other format as well "
        "([docs/deadlines.md](deadlines.md))."
    )
    of_spark = (
        "Made by `penstock.session`, and by `penstock.attach` where it can, unless you have set "
        "them: on the builder or in spark-defaults.conf. None changes an answer. Batches are the "
        "median of 100 after 30 of warm-up, one run each, which is good for 5 %: two quiet cores, "
        "`local[2]`, log to log, commits behind the query, Hadoop's configuration `slim`, the six "
        "before the other three; 5,000 rows in 20,000 keys, 2,500 rows in windows of 60 s sliding "
        "by 10 s, 1,000 rows joined within 30 s. `penstock doctor --conf NAME=VALUE` says which of "
        "them the settings of a job leave out."
    )
    parts = [
        HEAD,
        *_section("Of the server", of_server, server_settings()),
        *_section("Of the plug-in", of_plugin, plugin.SESSION_SETTINGS),
        *_section('Of one source or sink, `format("penstock")`', of_format, plugin.OPTIONS),
        *("## Spark's own, for shorter batches", of_spark, "\n".join(switch_table())),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, text: str, settings: Iterable[Setting]) -> tuple[str, str, str]:
    return f"## {title}", text, "\n".join(table(settings))


def table(settings: Iterable[Setting]) -> Iterator[str]:
    """One row a setting, below a head."""
    yield "| name | default | takes | |"
    yield "| --- | --- | --- | --- |"
    for setting in settings:
        yield f"| `{setting.name}` | {_default(setting)} | {_takes(setting)} | {setting.doc} |"


def switch_table() -> Iterator[str]:
    """One row a switch: its value, Spark's own, where it is made, what it takes away, and what was
    measured."""
    yield "| name | ours | Spark's | made | | effect |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for switch in SWITCHES:
        ours, theirs = f"`{switch.value}`", f"`{switch.spark}`" if switch.spark else "none"
        made = MADE[switch.scope] + ("; commits of ours only" if switch.needs_our_commit else "")
        yield f"| `{switch.name}` | {ours} | {theirs} | {made} | {switch.doc} | {switch.effect} |"


def _option_names(settings: Iterable[Setting]) -> str:
    names = [f"`{each.name.removeprefix(plugin.PREFIX)}`" for each in settings]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _default(setting: Setting) -> str:
    value = setting.default
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return amount(value, setting.unit or "") if isinstance(value, int) else f"`{value}`"


def _takes(setting: Setting) -> str:
    unit = setting.unit
    if unit is None:
        if isinstance(setting.default, bool):
            return "true or false"
        return ", ".join(f"`{word}`" for word in setting.choices) or "text"
    low, high = (
        None if bound is None else amount(bound, unit) for bound in (setting.min, setting.max)
    )
    bounds = f"{low} or more" if high is None else f"{low} to {high}"
    return bounds if unit == "bytes" else f"{unit}, {bounds}"


def amount(value: int, unit: str) -> str:
    """A number to be read: bytes in the largest unit that leaves it whole."""
    if unit == "bytes":
        for size, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
            if value and value % size == 0:
                return f"{value // size:,} {name}"
        return f"{value:,} bytes" if value != 1 else "1 byte"
    return f"{value:,}"
