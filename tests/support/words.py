"""Words that name nothing, in Python and Scala files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from support.sources import files, lab_modules, modules, scala_files, short

BARE_NAMES = {"found", "one", "what", "there", "told"}
# A docstring that opens with one of these has not said what it is about.
EMPTY_OPENINGS = {
    *("what", "how", "where", "which", "why", "who", "when"),
    *("its", "this", "that", "these", "those", "there", "here"),
    *("as", "so", "same", "none", "everything", "something", "until", "up", "of"),
}
# A subject among the first three words is not one of these.
PRONOUNS = {"it", "they", "them"}
SUBJECT_WORDS = 3

DocstringOwner = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def bare_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every variable, parameter, function, class or attribute with a bare name.

    A name is no less bare in capitals, or between underscores.
    """
    for node in ast.walk(tree):
        for name in _names(node):
            if name is not None and name.strip("_").lower() in BARE_NAMES:
                yield getattr(node, "lineno", 0), name


def _names(node: ast.AST) -> tuple[str | None, ...]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.arg(arg=name) | ast.keyword(arg=name):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return (name,)
        case ast.alias(name=name, asname=other):
            return (other or name,)
        case _:
            return ()


def docstrings_without_subject(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and opening of every public docstring that does not name its subject at once."""
    for owner in _public(tree):
        words = [
            word.strip("`*_,.:;()\"'").lower() for word in (ast.get_docstring(owner) or "").split()
        ][:SUBJECT_WORDS]
        if words and (words[0] in EMPTY_OPENINGS or PRONOUNS & set(words)):
            yield getattr(owner, "lineno", 1), " ".join(words)


def _public(tree: ast.Module) -> Iterator[DocstringOwner]:
    yield tree
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if not node.name.startswith("_"):
                    yield node


@cache
def files_with_bare_names() -> dict[str, list[tuple[int, str]]]:
    """Every Python file of the project that has bare names, and those."""
    trees = {
        short(path): ast.parse(path.read_text(encoding="utf-8"))
        for path in files()
        if path.suffix == ".py"
    }
    return {path: names for path, tree in trees.items() if (names := list(bare_names(tree)))}


@cache
def files_with_docstrings_without_subject() -> dict[str, list[tuple[int, str]]]:
    """Every file of product and laboratory with such docstrings, and their openings."""
    return {
        short(module.path): openings
        for module in (*modules(), *lab_modules())
        if (openings := list(docstrings_without_subject(module.tree)))
    }


_SCALA_TEXT = re.compile(
    r"""
    "{3}.*?"{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\])' | //[^\n]* | /\*.*?\*/
    """,
    re.DOTALL | re.VERBOSE,
)
_SCALA_BARE_NAME = re.compile(rf"\b_*(?:{'|'.join(sorted(BARE_NAMES))})_*\b", re.IGNORECASE)


def scala_bare_names(code: str) -> Iterator[tuple[int, str]]:
    """Line and name of every bare name in Scala that is not in a text or a comment."""
    names_alone = _SCALA_TEXT.sub(lambda text: " " + "\n" * text[0].count("\n"), code)
    for number, line in enumerate(names_alone.splitlines(), 1):
        for name in _SCALA_BARE_NAME.findall(line):
            yield number, name


@cache
def scala_files_with_bare_names() -> dict[str, list[tuple[int, str]]]:
    """Every Scala file of the project that has bare names, and those."""
    codes = {short(path): path.read_text(encoding="utf-8") for path in scala_files()}
    return {path: names for path, code in codes.items() if (names := list(scala_bare_names(code)))}
