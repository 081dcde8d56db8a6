"""Who may import whom in the Scala plug-in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from support.sources import ROOT, scala_files, short

SOURCES = ROOT / "jvm" / "src"
# In package `penstock` itself: what Spark is told to load by name, and the list of our rules on its
# plans; the rest there is for everybody.
ENTRIES = {"PenstockExtensions", "PenstockPlugin", "PenstockProvider", "PlanRules"}

IN_SPARK = "org.apache.spark.sql."
# Packages of Spark's own, in which some classes are ours.
SHARED = {
    f"{IN_SPARK}execution.streaming.state": "spark.state",
    "org.apache.spark.scheduler": "spark.scheduler",
    f"{IN_SPARK}execution.python": "spark.python",
    f"{IN_SPARK}execution.joins": "spark.joins",
}
PACKAGES = {
    f"{IN_SPARK}penstock": "spark",
    f"{IN_SPARK}penstock.admission": "spark.admission",
    f"{IN_SPARK}penstock.gate": "spark.gate",
    f"{IN_SPARK}penstock.windows": "spark.windows",
    f"{IN_SPARK}penstock.columnar": "spark.columnar",
    f"{IN_SPARK}penstock.eviction": "spark.eviction",
    f"{IN_SPARK}penstock.lookahead": "spark.lookahead",
    **SHARED,
}

# A package may import itself, what stands here, and nothing else of ours.
BASE = {"words", "settings", "wire"}
COMMIT = {"commit", "commit.channel", "commit.driver", "commit.executor", "commit.jvm"}
MAY_IMPORT = {
    "words": set(),
    "wire": set(),
    "settings": {"words"},
    "spark": {"words", "schedule", "spark.scheduler"},
    "client": BASE,
    "schedule": {"words", "settings"},
    "spark.scheduler": {"words", "schedule"},
    "checkpoint.location": {"words", "settings"},
    "eviction": {"words"},
    "observe": {"client", "eviction", "spark", "wire"},
    "devices": {"words", "settings", "observe", "wire"},
    "prefetch": BASE,
    "commit": {"words", "settings"},
    "commit.channel": {"words", "commit", "prefetch", "wire"},
    "commit.driver": {*BASE, "commit", "commit.channel"},
    "commit.executor": {
        *BASE,
        *("client", "prefetch", "spark", "checkpoint.location"),
        *("commit", "commit.channel"),
    },
    "commit.jvm": {
        *("client", "words", "wire", "observe", "devices", "eviction", "prefetch"),
        *("commit", "commit.channel", "commit.driver", "commit.executor"),
    },
    "query": {*BASE, "client", "spark", "observe", "commit.driver", "commit.jvm"},
    "admission": {*BASE, "client", "devices", "spark", "query", "observe", "commit.jvm"},
    "source": {
        *BASE,
        *("client", "spark", "query", "observe", "admission", "prefetch", "commit.jvm"),
    },
    "sink": {*BASE, "client", "spark", "query", "observe", "commit.executor", "commit.jvm"},
    "spark.state": {
        *("words", "settings", "spark", "eviction", "prefetch", "checkpoint.location"),
        *COMMIT,
    },
    "spark.eviction": {"settings", "eviction", "spark", "spark.state", "commit.jvm"},
    "spark.gate": {"words", "settings", "spark", "query", "commit.jvm"},
    "spark.windows": {"settings", "wire", "devices", "spark", "observe", "commit.jvm"},
    "spark.lookahead": {
        *("words", "settings", "client", "source", "spark", "spark.state", "prefetch"),
        *("commit", "commit.channel", "commit.jvm"),
    },
    "spark.python": set(),
    "spark.joins": set(),
    "spark.columnar": {
        *("words", "settings", "wire", "spark", "spark.joins", "spark.python", "spark.windows"),
        *("devices", "observe", "commit.jvm"),
    },
    "spark.admission": {*BASE, "spark", "admission"},
    "checkpoint": {
        *BASE,
        *("client", "spark", "spark.state", "checkpoint.location", "query"),
        *COMMIT,
    },
    "plugin": {
        *BASE,
        *COMMIT,
        *("client", "devices", "observe", "schedule", "source", "sink"),
        *("spark", "spark.lookahead", "spark.scheduler"),
    },
    "entry": {
        *BASE,
        *("commit.jvm", "plugin", "spark", "spark.gate", "spark.lookahead"),
        *("spark.admission", "spark.columnar", "spark.eviction", "spark.windows"),
    },
    "testing": {
        *BASE,
        *("commit", "commit.driver", "commit.jvm", "devices", "eviction", "observe"),
        *("prefetch", "schedule", "spark.scheduler"),
    },
}


@dataclass(frozen=True)
class Source:
    """One Scala file: its package and the code in it, without comments and texts."""

    path: Path
    package: str
    code: str

    @property
    def layer(self) -> str:
        if self.package == "penstock":
            return "entry" if self.path.stem in ENTRIES else "words"
        return PACKAGES.get(self.package, self.package.removeprefix("penstock."))

    def imports(self) -> set[str]:
        """The layers that the file names, itself left out."""
        named = _expanded(self.code)
        return {layer for name in named if (layer := layer_of(name))} - {self.layer}


def _expanded(code: str) -> set[str]:
    """Full names of ours in the code: of its imports each, and of what it names without one."""
    names: set[str] = set()
    for prefix, group in re.findall(r"^\s*import ([\w.]+)\.(\{[^}]*\}|\w+)$", code, re.MULTILINE):
        parts = group.strip("{}").split(",")
        names |= {f"{prefix}.{part.split('=>')[0].strip()}" for part in parts}
    rest = re.sub(r"^\s*(?:import|package) .*$", "", code, flags=re.MULTILINE)
    return names | set(
        re.findall(r"(?<![\w.$])((?:org\.apache\.spark\.sql\.)?penstock\.[\w.]+)", rest)
    )


def layer_of(name: str) -> str | None:
    """The layer of a full name; None for what is not ours."""
    package, _, last = name.rpartition(".")
    while package and package[package.rfind(".") + 1].isupper():
        package, _, last = package.rpartition(".")
    if package == "penstock":
        return "entry" if last in ENTRIES else "words"
    if package in SHARED:
        ours = {source.path.stem for source in sources() if source.package == package}
        return SHARED[package] if last in ours else None
    if package.startswith((f"{IN_SPARK}penstock", "penstock.")):
        return PACKAGES.get(package, package.removeprefix("penstock."))
    return None


@cache
def sources() -> tuple[Source, ...]:
    read_sources = []
    for path in scala_files():
        if path.is_relative_to(SOURCES):
            text = path.read_text(encoding="utf-8")
            package = re.search(r"^package ([\w.]+)$", text, re.MULTILINE)
            assert package is not None, f"{short(path)} names no package"
            code = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', "", text, flags=re.DOTALL)
            read_sources.append(Source(path, package[1], code))
    return tuple(read_sources)


def test_a_file_lies_in_the_folder_of_its_package() -> None:
    wrong = [
        short(source.path)
        for source in sources()
        if source.path.parent != SOURCES.joinpath(*source.package.split("."))
    ]
    assert not wrong


def test_every_package_has_its_place_in_the_table() -> None:
    assert {source.layer for source in sources()} == set(MAY_IMPORT)


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_a_package_imports_only_the_packages_below_it(layer: str) -> None:
    wrong = {
        short(source.path): extra
        for source in sources()
        if source.layer == layer and (extra := source.imports() - MAY_IMPORT[layer])
    }
    assert not wrong


def test_no_package_imports_itself_by_a_detour() -> None:
    graph: dict[str, set[str]] = {layer: set() for layer in MAY_IMPORT}
    for source in sources():
        graph[source.layer] |= source.imports()
    above = dict(graph)
    while free := [layer for layer, below in above.items() if not below & above.keys()]:
        for layer in free:
            del above[layer]
    assert above == {}


def test_imports_are_read_in_every_form() -> None:
    code = (
        "import penstock.wire.{Json, Write => TaskWrite}\n"
        "import penstock.commit._\n"
        "import org.apache.spark.sql.penstock.RunningQuery\n"
        "import org.apache.spark.sql.penstock.gate.GateRule\n"
        "val one = penstock.client.Gateway.to(there)\n"
    )
    layers = {layer_of(name) for name in _expanded(code)}
    assert layers == {"wire", "commit", "spark", "spark.gate", "client"}


def test_nobody_imports_what_spark_loads_by_name_or_what_only_tests_use() -> None:
    wrong = [short(source.path) for source in sources() if source.imports() & {"entry", "testing"}]
    assert not wrong


def test_private_members_are_reached_in_one_file() -> None:
    reached = re.compile(r"getDeclared|setAccessible|Class\.forName|classForName|MethodHandles")
    # Messages between JVMs are read with the loader of our own classes; nothing of Spark's is.
    allowed = {"JavaBytes", "SparkMembers"}
    wrong = [
        short(source.path)
        for source in sources()
        if source.path.stem not in allowed and reached.search(source.code)
    ]
    assert not wrong


def test_settings_are_named_in_one_file() -> None:
    quoted = re.compile(r'"spark\.penstock\.')
    texts = {short(source.path): source.path.read_text("utf-8") for source in sources()}
    named = [name for name, text in texts.items() if quoted.search(text)]
    assert named == ["jvm/src/penstock/settings/Keys.scala"]
