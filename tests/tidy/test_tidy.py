"""Sizes, names and words that the whole project keeps to."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from itertools import chain, takewhile

import pytest

from support.run_order import LONGEST_FIRST
from support.skip_reasons import other_reasons
from support.sources import (
    ROOT,
    files,
    lab_modules,
    lines_of,
    modules,
    scala_files,
    short,
)

FILE_LINES_MAX = 350
FILE_LINES_MEDIAN_MAX = 200
SUITE_FILE_LINES_MAX = 250
FUNCTION_LINES_MAX = 60
SCALA_BECAUSE = "Scala because: "
REASON_WORDS_MIN = 8
TEXT = {".py", ".scala", ".md", ".toml", ".sql", ".json", ".html", ".js", ".css", ".yml", ""}

# Joined here, so that this file does not hold what it forbids.
FORBIDDEN_WORDS = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]
FORBIDDEN_NAMES = ("manager", "helper", "util", "utils", "common", "misc")
HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "repo1." + "maven", "repo.maven." + "apache"]
OWN_PATHS = [f"/{top}/" for top in ("work", "root", "home", "opt", "Users")]


def text_files() -> list[str]:
    return [short(path) for path in files() if path.suffix in TEXT and path.name != "LICENSE"]


def found_in_text(pattern: str) -> list[str]:
    looked_for = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()}"
        for name in text_files()
        for number, line in enumerate(lines_of(ROOT / name), 1)
        if looked_for.search(line)
    ]


def test_no_source_file_is_long() -> None:
    paths = chain((module.path for module in (*modules(), *lab_modules())), scala_files())
    sizes = {short(path): len(lines_of(path)) for path in paths}
    assert {name: size for name, size in sizes.items() if size > FILE_LINES_MAX} == {}
    assert statistics.median(sizes.values()) <= FILE_LINES_MEDIAN_MAX


def test_a_suite_is_a_short_file_or_a_folder_of_files_that_say_what_they_are() -> None:
    suites = [module for module in lab_modules() if module.layer == "suites"]
    long = {m.name: size for m in suites if (size := len(lines_of(m.path))) > SUITE_FILE_LINES_MAX}
    assert long == {}
    folders = [module.path.parent for module in suites if module.path.name == "__init__.py"][1:]
    for folder in folders:
        names = {path.name for path in folder.glob("*.py")}
        assert names >= {"cells.py", "runs.py", "figures.py", "tables.py"}, folder.name


def test_no_function_is_long() -> None:
    sizes = dict(chain.from_iterable(m.functions() for m in (*modules(), *lab_modules())))
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX} == {}


def test_no_scala_method_is_long() -> None:
    wrong = {}
    for path in scala_files():
        lines = lines_of(path)
        for start, line in enumerate(lines):
            opened = re.match(
                r"( *)(?:(?:override|private|protected|final)\S* )*def (\w+).*\{$", line
            )
            if opened is None:
                continue
            # The formatter's indentation is what closes a method: a brace in its column.
            end = next(
                (n for n in range(start + 1, len(lines)) if lines[n] == f"{opened[1]}}}"), start
            )
            if end - start + 1 > FUNCTION_LINES_MAX:
                wrong[f"{short(path)}:{opened[2]}"] = end - start + 1
    assert wrong == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    def words(stem: str) -> set[str]:
        return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", stem)}

    # The class that Spark's setting for checkpoint files names carries Spark's own word.
    allowed = {"PenstockFileManager"}
    wrong = [
        short(path)
        for path in files()
        if path.stem not in allowed and words(path.stem) & set(FORBIDDEN_NAMES)
    ]
    assert not wrong


def test_nothing_is_left_for_later() -> None:
    assert found_in_text(rf"\b({'|'.join(FORBIDDEN_WORDS)})\b") == []


def test_no_path_of_a_machine_is_written_down() -> None:
    assert found_in_text("|".join(rf"(?<![\w.}}/:]){path}\w" for path in OWN_PATHS)) == []


def test_no_package_registry_is_named() -> None:
    assert found_in_text("|".join(re.escape(host) for host in HOSTS)) == []


def test_every_python_file_with_code_postpones_its_annotations() -> None:
    wrong = []
    for path in files():
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            body = ast.parse(text).body
            only_a_docstring = len(body) <= 1 and all(isinstance(node, ast.Expr) for node in body)
            if not only_a_docstring and "\nfrom __future__ import annotations\n" not in text:
                wrong.append(short(path))
    assert not wrong


def test_the_version_is_written_in_one_place() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', pyproject, re.MULTILINE)
    assert version is not None
    quoted = re.compile(rf"""["']{re.escape(version[1])}["']""")
    code = [
        name for name in text_files() if name.startswith(("src/", "lab/", "jvm/", "pyproject.toml"))
    ]
    written_in = [name for name in code if quoted.search((ROOT / name).read_text(encoding="utf-8"))]
    assert written_in == ["pyproject.toml"]


def test_the_changelog_has_the_version() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.findall(r'^version = "(.+)"$', pyproject, re.MULTILINE)[0]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_skipped_test_says_so_and_why() -> None:
    trees = {
        short(path): ast.parse(path.read_text(encoding="utf-8"))
        for path in files()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")
    }
    wrong = {name: reasons for name, tree in trees.items() if (reasons := [*other_reasons(tree)])}
    assert wrong == {}


@pytest.mark.parametrize(
    ("code", "is_right"),
    [
        ('pytest.skip("skipped, because it rains")', True),
        ('pytest.skip(f"skipped, because {why}")', True),
        ("pytest.mark.skipif(True, reason=NO_NATS)", True),
        ('pytest.skip(f"{NO_GPU}: {why}")', True),
        ('pytest.skip("there is no nats-server")', False),
        ("pytest.skip(why)", False),
        ('pytest.importorskip("pandas")', False),
        ('pytest.mark.skipif(True, reason="no nats-server here")', False),
    ],
)
def test_a_reason_in_other_words_is_seen(code: str, is_right: bool) -> None:
    assert bool(list(other_reasons(ast.parse(code)))) != is_right


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_in_the_text_exists(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = re.findall(r"(?:^ *|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert set(named) <= targets


def test_every_relative_link_in_the_text_leads_somewhere() -> None:
    wrong = [
        f"{short(page)}: {target}"
        for page in files()
        if page.suffix == ".md"
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not wrong


def test_every_scala_file_says_why_it_cannot_be_python() -> None:
    """The reason is an interface of Spark's, or a path per row, key or task; no two are alike."""
    reasons: dict[str, str] = {}
    for path in scala_files():
        if path.is_relative_to(ROOT / "jvm" / "src"):
            head = takewhile(lambda line: line.startswith("// "), lines_of(path))
            reasons[short(path)] = " ".join(line.removeprefix("// ") for line in head)
    pattern = rf"{SCALA_BECAUSE}(\S+ ){{{REASON_WORDS_MIN - 1},}}\S+\."
    assert [name for name, reason in reasons.items() if not re.fullmatch(pattern, reason)] == []
    assert [reason for reason, count in Counter(reasons.values()).items() if count > 1] == []


def test_the_files_that_run_first_are_there() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / "tests" / name).is_file()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)
