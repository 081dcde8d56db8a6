"""Who may import whom, and the things that happen in one place only."""

from __future__ import annotations

import ast

import pytest

from support.sources import Module, lab_modules, modules

# A part may import itself, the parts named here, and nothing else of ours.
WORDS = {"errors", "clock"}
MAY_IMPORT = {
    "errors": set(),
    "clock": set(),
    "model": WORDS,
    "settings": WORDS,
    "log": {*WORDS, "model", "settings"},
    "admission": {*WORDS, "model", "log"},
    "gateway": {*WORDS, "model", "log", "admission", "settings"},
    "client": {*WORDS, "model"},
    "spark": {*WORDS, "client", "settings"},
    "checkpoint": {*WORDS, "client", "model"},
    "supervise": WORDS,
    "commit": WORDS,
    "testing": WORDS,
}
# The laboratory's parts; `penstock` is the product, of which it may use any part but `cli` and
# `gateway`.
LAB_MAY_IMPORT: dict[str, set[str]] = {
    "percentiles": set(),
    "processes": set(),
    "workloads": {"percentiles", "processes"},
    "queries": set(),
    "oracle": {"queries"},
    "demo": {"experiment", "oracle", "percentiles", "processes", "queries", "workloads"},
    "baselines": {"percentiles", "processes", "workloads"},
    "experiment": {
        *("oracle", "percentiles", "processes", "queries", "workloads"),
    },
    "measure": {
        *("baselines", "demo", "experiment", "oracle", "percentiles", "processes"),
        *("queries", "workloads"),
    },
    "suites": {"baselines", "experiment", "measure", "percentiles", "queries", "workloads"},
}
NOT_FOR_THE_LAB = {"cli", "gateway"}
# The log's public modules, which is all that a task graph without Spark runs on.
PUBLIC_LOG = (
    *("contract", "operations", "upkeep", "raw", "reading.subscription"),
    *("backends.local", "backends.embedded.log", "backends.jetstream.log"),
    "backends.jetstream.address",
)
PACKAGES = {"penstock": modules, "penstock_lab": lab_modules}


def parts_imported(module: Module, package: str) -> set[str]:
    """The parts of `package` that a module imports, itself left out."""
    parts = {
        name.split(".")[1]
        for name in module.imports()
        if name.startswith(f"{package}.") and name.split(".")[1:2]
    }
    known = {each.layer for each in PACKAGES[package]()}
    own = {module.layer} if module.name.split(".")[0] == package else set()
    return (parts & known) - own


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_a_part_imports_only_the_parts_below_it(layer: str) -> None:
    wrong = {
        module.name: extra
        for module in modules()
        if module.layer == layer
        and (extra := parts_imported(module, "penstock") - MAY_IMPORT[layer])
    }
    assert not wrong


@pytest.mark.parametrize("layer", sorted(LAB_MAY_IMPORT))
def test_a_part_of_the_laboratory_imports_only_the_parts_below_it(layer: str) -> None:
    wrong = {
        module.name: extra
        for module in lab_modules()
        if module.layer == layer
        and (extra := parts_imported(module, "penstock_lab") - LAB_MAY_IMPORT[layer])
    }
    assert not wrong


def test_every_part_has_its_layer_written_down() -> None:
    entry_points = {"penstock", "__main__", "cli"}
    assert {module.layer for module in modules()} - entry_points == MAY_IMPORT.keys()
    lab_parts = {module.layer for module in lab_modules()} - {"penstock_lab", "cli"}
    assert lab_parts == LAB_MAY_IMPORT.keys()


def test_the_product_imports_nothing_of_the_laboratory_or_the_tests() -> None:
    others = {"penstock_lab", "support", "simulation"}
    wrong = [m.name for m in modules() if {name.split(".")[0] for name in m.imports()} & others]
    assert not wrong


def test_the_laboratory_uses_the_product_without_its_command_line_and_its_server() -> None:
    wrong = [m.name for m in lab_modules() if parts_imported(m, "penstock") & NOT_FOR_THE_LAB]
    assert not wrong


def test_a_task_graph_uses_the_public_modules_of_the_log_alone() -> None:
    public = tuple(f"penstock.log.{name}." for name in PUBLIC_LOG)
    wrong = {
        module.name: extra
        for module in lab_modules()
        if module.name.startswith("penstock_lab.baselines.task_graph")
        and (
            extra := {
                name
                for name in module.imports()
                if name.startswith("penstock.log.") and not f"{name}.".startswith(public)
            }
        )
    }
    assert not wrong


def test_nobody_imports_the_command_line() -> None:
    wrong = [
        module.name
        for module in modules()
        if "cli" in parts_imported(module, "penstock") and module.name != "penstock.__main__"
    ]
    assert not wrong


def test_the_client_knows_the_server_by_http_only() -> None:
    servers = {"log", "gateway", "admission"}
    wrong = [
        module.name
        for module in modules()
        if module.layer in ("client", "spark", "checkpoint")
        and parts_imported(module, "penstock") & servers
    ]
    assert not wrong


def test_a_route_decodes_and_encodes_and_never_opens_the_store() -> None:
    """Routes hand questions to `Gateway.read`, which alone looks into the log for them."""
    routes = [m for m in modules() if m.name.startswith("penstock.gateway.routes.")]
    assert len(routes) > 5
    wrong = [
        module.name
        for module in routes
        if any(name.startswith("penstock.log.store") for name in module.imports())
        or ".reading()" in module.path.read_text(encoding="utf-8")
    ]
    assert not wrong


def test_a_stage_does_its_reading_and_writing_in_one_file() -> None:
    effects = ("penstock.log.backends", "penstock.log.store", "penstock.log.reading.visible")
    acting = [
        module.name
        for module in modules()
        if module.layer == "admission"
        and any(name.startswith(effects) for name in module.imports())
    ]
    assert acting == ["penstock.admission.runner"]


def test_only_the_clock_reads_the_time() -> None:
    every = (*modules(), *lab_modules())
    wrong = [m.name for m in every if "time" in m.imports() and m.name != "penstock.clock"]
    assert not wrong


def test_only_one_module_touches_py4j() -> None:
    reached = {"_jvm", "_jsc", "_jsparkSession", "_jdf", "_jconf"}
    wrong = []
    for module in (*modules(), *lab_modules()):
        if module.name == "penstock.spark.jvm":
            continue
        names = {n.attr for n in ast.walk(module.tree) if isinstance(n, ast.Attribute)}
        text = module.path.read_text(encoding="utf-8")
        libraries = {name.split(".")[0] for name in module.imports()}
        if "py4j" in libraries or names & reached or "SparkContext._gateway" in text:
            wrong.append(module.name)
    assert not wrong


def test_only_the_modules_for_spark_import_pyspark() -> None:
    wrong = [
        module.name
        for module in modules()
        if module.layer != "spark" and "pyspark" in {n.split(".")[0] for n in module.imports()}
    ]
    assert not wrong


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_module_imports_itself_by_a_detour(package: str) -> None:
    every = PACKAGES[package]()
    known = {module.name for module in every}
    graph = {m.name: (m.imports(lazy=False) & known) - {m.name} for m in every}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " imports ".join((*path[path.index(name) :], name))
        if name in done:
            return
        for other in sorted(graph[name]):
            # A package imports its modules to offer them; they may name the package itself.
            if not name.startswith(f"{other}."):
                visit(other, (*path, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_every_public_module_says_what_it_is_for() -> None:
    every = (*modules(), *lab_modules())
    assert [module.name for module in every if not ast.get_docstring(module.tree)] == []
