"""The source tree as data: which files there are, what each imports, how long its functions are."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
LAB = ROOT / "lab" / "src" / "penstock_lab"


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def layer(self) -> str:
        """The part right under its package: a folder's or a file's name."""
        return self.name.split(".")[1] if "." in self.name else self.name

    def imports(self, *, lazy: bool = True) -> set[str]:
        """Full names of what is imported; without `lazy`, only at import time.

        Names that only a type checker needs count like the rest: a layer is a matter of thought.
        """
        nodes = ast.walk(self.tree) if lazy else _at_import(self.tree)
        imported: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        return imported

    def functions(self) -> Iterator[tuple[str, int]]:
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{self.name}.{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child
            yield from _at_import(child)


def modules() -> tuple[Module, ...]:
    """The product's modules."""
    return _modules_under(PACKAGE)


def lab_modules() -> tuple[Module, ...]:
    """The laboratory's modules."""
    return _modules_under(LAB)


@cache
def _modules_under(package: Path) -> tuple[Module, ...]:
    modules = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(modules)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = {ROOT / line for line in listed.stdout.splitlines()}
    else:
        # An unpacked source archive has no repository.
        tops = ("src", "lab", "jvm", "tests", "docs", "examples")
        paths = {path for top in tops for path in (ROOT / top).rglob("*") if path.is_file()}
        paths |= {path for path in ROOT.iterdir() if path.is_file()}
    hidden = {"__pycache__", "jars"}
    return tuple(sorted(p for p in paths if p.is_file() and not hidden & set(p.parts)))


def scala_files() -> list[Path]:
    return [path for path in files() if path.suffix == ".scala"]


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
