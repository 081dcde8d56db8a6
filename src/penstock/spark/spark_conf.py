"""Settings the user has already made: builder options, then spark-defaults.conf.

An option on the builder hides the same one in spark-defaults.conf, so whoever appends to a list
must read the file as well.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import BadCall
from penstock.settings import plugin

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider"
PROVIDERS = (PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")


def defaults(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of spark-defaults.conf, from SPARK_CONF_DIR or Spark's own folder."""
    folder = environ.get("SPARK_CONF_DIR")
    if folder is None:
        home = environ.get("SPARK_HOME")
        spec = importlib.util.find_spec("pyspark")
        if home is None and spec is not None and spec.origin is not None:
            home = str(Path(spec.origin).parent)
        folder = str(Path(home or ".") / "conf")
    path = Path(folder) / "spark-defaults.conf"
    if not path.is_file():
        return {}
    settings: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        pair = re.match(r"\s*([^\s=:#!]+)\s*[=:\s]\s*(.*)", line)
        if pair:
            settings[pair[1]] = pair[2].strip()
    return settings


def refuse_connect(options: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> None:
    """Raise BadCall where the session would be one of Spark Connect, which has no JVM here."""
    mode = str(options.get("spark.api.mode", environ.get("SPARK_API_MODE", ""))).lower()
    why = None
    if "spark.remote" in options:
        why = f"spark.remote is {options['spark.remote']}"
    elif "SPARK_REMOTE" in environ:
        why = f"SPARK_REMOTE is {environ['SPARK_REMOTE']}"
    elif "SPARK_CONNECT_MODE_ENABLED" in environ:
        why = "this process has a Spark Connect session already"
    elif mode == "connect" or (not mode and environ.get("SPARK_CONNECT_MODE") == "1"):
        why = "the API mode is connect"
    if why is not None:
        raise BadCall(
            f"penstock needs classic Spark in this process, and {why}; remove that setting, or "
            "start the Connect server itself with the plug-in's jar and settings",
            code="spark_connect",
        )


def local_cores(master: str | None, cores_here: int) -> int | None:
    """Cores of a local master; None for any other."""
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\]", master or "")
    if match is None:
        return None
    return cores_here if match[1] == "*" else int(match[1])


def has_our_commit(user_conf: Mapping[str, str]) -> bool:
    """Whether commits follow behind the query, over the provider that they need."""
    return (
        user_conf.get(plugin.COMMIT_MODE.name) != "sync"
        and user_conf.get(PROVIDER_KEY, PROVIDER) in PROVIDERS
    )


def makes_switches(user_conf: Mapping[str, str]) -> bool:
    """Whether settings of Spark's own that shorten a batch are to be made."""
    return user_conf.get(plugin.BATCH_SWITCHES.name, "true").lower() != "false"


def appended(before: str | None, item: str) -> str:
    """A comma-separated list with `item` at its end, once."""
    items = [part.strip() for part in (before or "").split(",") if part.strip()]
    return ",".join([*(part for part in items if part != item), item])
