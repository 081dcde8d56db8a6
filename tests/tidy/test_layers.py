"""Who may import whom, and the things that happen in one place only."""

from __future__ import annotations

import ast

import pytest

from support.sources import Module, modules

# A part may import itself, what stands here, and nothing else of ours.
WORDS = {"errors", "clock"}
MAY_IMPORT = {
    "errors": set(),
    "clock": set(),
    "model": WORDS,
    "settings": WORDS,
    "log": {*WORDS, "model", "settings"},
    "gateway": {*WORDS, "model", "log", "settings"},
    "client": {*WORDS, "model"},
    "jvm": WORDS,
    "told": WORDS,
    "spawn": {*WORDS, "client"},
    "coordinator": {*WORDS, "client", "model"},
    "outputs": WORDS,
    "sessions": {*WORDS, "client", "jvm", "spawn", "told"},
    "workloads": {*WORDS, "client", "model"},
    "demo": {*WORDS, "client", "model", "spawn", "workloads"},
    "commit": WORDS,
    "testing": {*WORDS, "commit", "log", "model", "settings"},
    "protocols": {*WORDS, "log", "model", "workloads"},
    "queries": WORDS,
    "oracle": {*WORDS, "client", "queries"},
    "bench": {
        *WORDS,
        *("client", "demo", "jvm", "log", "model", "oracle", "protocols", "queries", "spawn"),
        *("testing", "workloads"),
    },
}


def ours(module: Module) -> set[str]:
    """The parts of penstock that a module imports, itself left out."""
    parts = {
        name.split(".")[1]
        for name in module.imports()
        if name.startswith("penstock.") and name.split(".")[1:2]
    }
    known = {one.layer for one in modules()}
    return (parts & known) - {module.layer}


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_a_part_imports_only_the_parts_below_it(layer: str) -> None:
    wrong = {
        module.name: extra
        for module in modules()
        if module.layer == layer and (extra := ours(module) - MAY_IMPORT[layer])
    }
    assert not wrong


def test_nobody_imports_the_command_line() -> None:
    wrong = [m.name for m in modules() if "cli" in ours(m) and m.name != "penstock.__main__"]
    assert not wrong


def test_the_client_knows_the_server_by_http_only() -> None:
    servers = {"log", "gateway"}
    wrong = [m.name for m in modules() if m.layer in ("client", "spawn") and ours(m) & servers]
    assert not wrong


def test_only_the_clock_reads_the_time() -> None:
    wrong = [m.name for m in modules() if "time" in m.imports() and m.name != "penstock.clock"]
    assert not wrong


def test_only_the_jvm_part_touches_py4j() -> None:
    reached = {"_jvm", "_jsc", "_jsparkSession", "_jdf", "_jconf"}
    wrong = []
    for module in modules():
        if module.layer == "jvm":
            continue
        names = {n.attr for n in ast.walk(module.tree) if isinstance(n, ast.Attribute)}
        text = module.path.read_text(encoding="utf-8")
        libraries = {name.split(".")[0] for name in module.imports()}
        if "py4j" in libraries or names & reached or "SparkContext._gateway" in text:
            wrong.append(module.name)
    assert not wrong


def test_no_module_imports_itself_by_a_detour() -> None:
    known = {module.name for module in modules()}
    graph = {m.name: (m.imports(lazy=False) & known) - {m.name} for m in modules()}
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
    wrong = [module.name for module in modules() if not ast.get_docstring(module.tree)]
    assert not wrong
