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
    "fit": set(),
    "admission": {*WORDS, "fit", "model", "log", "schedule"},
    "devices": {*WORDS, "fit", "model"},
    "gateway": {*WORDS, "model", "log", "admission", "devices", "settings"},
    "client": {*WORDS, "model"},
    "lookup": {*WORDS, "client", "model", "prefetch"},
    "spark": {*WORDS, "client", "devices", "lookup", "model", "observe", "prefetch", "settings"},
    "checkpoint": {*WORDS, "client", "model"},
    "supervise": WORDS,
    "observe": WORDS,
    "commit": WORDS,
    "schedule": WORDS,
    "eviction": WORDS,
    "prefetch": WORDS,
    "simulate": {*WORDS, "model", "admission", "prefetch", "schedule"},
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
# The log's parts; its modules that are in no sub-package are parts of their own.
LOG_WORDS = {
    *("address", "contract", "operations", "plan", "retired_operations", "rules", "state", "view"),
}
LOG_MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(LOG_WORDS, LOG_WORDS),
    "decide": LOG_WORDS,
    "store": {*LOG_WORDS, "decide"},
    "raw": {*LOG_WORDS, "decide"},
    "reading": {*LOG_WORDS, "decide", "store"},
    "backends": {*LOG_WORDS, "decide", "store", "reading"},
    "retention": {*LOG_WORDS, "decide", "store", "reading", "backends"},
    "opening": {*LOG_WORDS, "backends"},
    "invariants": {*LOG_WORDS, "decide", "store", "backends"},
}
# What the laboratory may use of the log, as its docstring says.
LOG_FOR_THE_LAB = {
    f"penstock.log.{name}"
    for name in (
        *("contract", "operations", "opening", "address", "backends.local"),
        *("raw.classify", "raw.entry_facts", "raw.repeats", "reading.subscription"),
    )
}
JETSTREAM = "penstock.log.backends.jetstream"
EMBEDDED = "penstock.log.backends.embedded"
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


def log_part(name: str) -> str:
    return name.split(".")[2]


@pytest.mark.parametrize("part", sorted(LOG_MAY_IMPORT))
def test_a_part_of_the_log_imports_only_the_parts_below_it(part: str) -> None:
    wrong = {
        (module.name, used)
        for module in modules()
        if module.name.startswith("penstock.log.") and log_part(module.name) == part
        for used in module.imports()
        if used.startswith("penstock.log.")
        and log_part(used) in LOG_MAY_IMPORT.keys() - LOG_MAY_IMPORT[part] - {part}
    }
    assert not wrong


def test_every_part_of_the_log_has_its_layer_written_down() -> None:
    parts = {log_part(m.name) for m in modules() if m.name.startswith("penstock.log.")}
    assert parts == LOG_MAY_IMPORT.keys()


def users_of(package: str) -> set[str]:
    """Modules outside the package that import something of it, lazily too."""
    return {
        module.name
        for module in (*modules(), *lab_modules())
        if not module.name.startswith(package)
        and any(name.startswith(package) for name in module.imports())
    }


def test_each_backend_is_imported_by_the_opening_door_alone() -> None:
    assert users_of(JETSTREAM) == users_of(EMBEDDED) == {"penstock.log.opening"}


def test_the_laboratory_uses_only_the_public_modules_of_the_log() -> None:
    known = {module.name for module in modules()}
    wrong = {
        (module.name, used)
        for module in lab_modules()
        for used in module.imports() & known
        if used.startswith("penstock.log.") and used not in LOG_FOR_THE_LAB
    }
    assert not wrong
    text = next(module for module in modules() if module.name == "penstock.log")
    page = ast.get_docstring(text.tree) or ""
    assert not [name for name in LOG_FOR_THE_LAB if f"`{name[13:]}`" not in page]


def test_the_product_imports_nothing_of_the_laboratory_or_the_tests() -> None:
    others = {"penstock_lab", "support", "simulation"}
    wrong = [m.name for m in modules() if {name.split(".")[0] for name in m.imports()} & others]
    assert not wrong


def test_the_laboratory_uses_the_product_without_its_command_line_and_its_server() -> None:
    wrong = [m.name for m in lab_modules() if parts_imported(m, "penstock") & NOT_FOR_THE_LAB]
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


def test_a_stage_does_its_reading_and_writing_in_few_files() -> None:
    effects = ("penstock.log.backends", "penstock.log.store", "penstock.log.reading.visible")
    acting = [
        module.name
        for module in modules()
        if module.layer == "admission"
        and any(name.startswith(effects) for name in module.imports())
    ]
    assert acting == [
        f"penstock.admission.{name}" for name in ("batch_looks", "batch_runner", "runner")
    ]


def test_planning_reads_and_writes_in_one_file_and_workers_in_those_of_their_machine() -> None:
    effects = {"pathlib", "shutil"}
    acting = [m.name for m in modules() if m.layer == "devices" and m.imports() & effects]
    machine = ("gpu.slots", "gpu.worker_gpu", "this_machine")
    assert sorted(acting) == [
        f"penstock.devices.{name}" for name in ("calibration_files", *machine)
    ]


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
