"""Plain words: names that carry their subject, docstrings that begin with it, and the glossary."""

from __future__ import annotations

import ast
import re

import pytest

from support.sources import ROOT, lines_of, modules, scala_files
from support.words import (
    bare_names,
    docstrings_without_subject,
    files_with_bare_names,
    files_with_docstrings_without_subject,
    scala_bare_names,
    scala_files_with_bare_names,
)

UNCLEAN = {
    "names": files_with_bare_names,
    "names in Scala": scala_files_with_bare_names,
    "docstrings": files_with_docstrings_without_subject,
}
ARCHITECTURE_WORDS_MAX = 1_500
GLOSSARY = ROOT / "docs" / "glossary.md"
GLOSSARY_LINE = re.compile(r"- \*\*(?P<word>[^*]+)\*\*: (?P<meaning>\S.*)")


@pytest.mark.parametrize("kind", sorted(UNCLEAN))
def test_no_file_has_words_that_name_nothing(kind: str) -> None:
    wrong = [
        f"{path}:{line}: {word}" for path, words in UNCLEAN[kind]().items() for line, word in words
    ]
    assert not wrong


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "def told(): ...",
        "def f(what): ...",
        "f(one=1)",
        "x.there",
        "[one for one in y]",
        "import a as one",
        "match x:\n  case [*found]: ...",
        "class Found: ...",
        "ONE = 1",
        "self._told = {}",
    ],
)
def test_a_bare_name_is_seen_wherever_it_stands(code: str) -> None:
    assert list(bare_names(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "val found = 1",
        "private var there: Option[Long] = None",
        "def told(act: String): Unit",
        "def equal[A](what: String, got: A): Unit",
        "pieces.map(one => one.batch)",
        "case Some(found) => ()",
        "for (one <- pieces) ()",
        'val quote = \'"\'; val told = "a"',
        "private val Told = 1",
        "val _one = 1",
    ],
)
def test_a_bare_name_is_seen_in_scala_wherever_it_stands(code: str) -> None:
    assert list(scala_bare_names(code))


def test_a_bare_name_in_a_text_or_comment_of_scala_is_not_refused() -> None:
    texts = 's"${piece} is there" /* what\n was told */ "http://one" // found'
    assert not list(scala_bare_names(f'val foundPiece = {texts}\n"""what\n"there" is told"""'))
    assert list(scala_bare_names('/*\n*/ "\\"" + one')) == [(2, "one")]


def test_a_bare_name_within_a_longer_one_or_in_a_text_is_not_refused() -> None:
    assert not list(bare_names(ast.parse("found_entry = 'there'; one_batch(); told_at = 1")))


@pytest.mark.parametrize(
    ("docstring", "has_subject"),
    [
        ("What was done.", False),
        ("Start it again.", False),
        ("Of one batch.", False),
        ("The files of a batch.", True),
        ("Whether PySpark is installed.", True),
        ("`penstock drain`: copies a checkpoint.", True),
    ],
)
def test_a_docstring_names_its_subject_in_three_words(docstring: str, has_subject: bool) -> None:
    module = ast.parse(f'def f():\n    """{docstring}"""')
    assert bool(list(docstrings_without_subject(module))) != has_subject


def test_the_architecture_is_one_page() -> None:
    words = (ROOT / "ARCHITECTURE.md").read_text().split()
    assert len(words) <= ARCHITECTURE_WORDS_MAX


def test_the_architecture_states_the_share_of_scala() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (stated,) = re.findall(r"Scala is (\d+) % of the product's lines", text)
    scala = [path for path in scala_files() if path.is_relative_to(ROOT / "jvm" / "src")]
    python = [module.path for module in modules()]
    lines = [sum(len(lines_of(path)) for path in paths) for paths in (scala, python)]
    assert abs(100 * lines[0] / sum(lines) - int(stated)) < 1, lines


def test_the_architecture_names_every_package_of_the_plug_in() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    where = text[text.index("jvm/src/penstock/      ") : text.index("jvm/src/org/…")]
    packages = [
        path.name for path in (ROOT / "jvm" / "src" / "penstock").iterdir() if path.is_dir()
    ]
    assert [name for name in packages if not re.search(rf"\b{name}\b", where)] == []


def test_the_glossary_has_every_word_once_in_order_on_a_line_of_its_own() -> None:
    lines = [line for line in lines_of(GLOSSARY)[1:] if line.strip()]
    entries = [GLOSSARY_LINE.fullmatch(line) for line in lines if line.startswith("- ")]
    assert None not in entries
    words = [entry["word"] for entry in entries if entry is not None]
    assert words == sorted(set(words), key=str.lower)
    assert len(lines) == len(words) + 1, "a sentence at the top, then words alone"
