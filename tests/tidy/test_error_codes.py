"""The supervisor's table of error codes names the codes that exist, each with its kind."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from penstock.supervise.restarts import FINAL, KIND_OF_CODE, PASSING
from support.sources import ROOT, modules

KINDS = {*FINAL, *PASSING}


def python_codes() -> set[tuple[str, str]]:
    """Kind and code of every error that the product raises in Python."""
    return {
        (node.func.id, keyword.value.value)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS
        for keyword in node.keywords
        if keyword.arg == "code"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, str)
    }


def scala_codes() -> set[tuple[str, str]]:
    """Kind and code of every error that the plug-in raises."""
    made = re.compile(rf'new ({"|".join(sorted(KINDS))})\(\s*"(\w+)"')
    # The list of settings names the code that a wrong value is refused with, which is a BadCall.
    refusal = re.compile(r'private def Bad\w+ = "(\w+)"')
    scala = [path.read_text("utf-8") for path in (ROOT / "jvm" / "src").rglob("*.scala")]
    return {pair for text in scala for pair in made.findall(text)} | {
        ("BadCall", code) for text in scala for code in refusal.findall(text)
    }


def kinds_of_codes() -> dict[str, set[str]]:
    """The kinds that each code is raised with."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for kind, code in python_codes() | scala_codes():
        kinds[code].add(kind)
    return kinds


def test_every_code_of_the_table_is_raised_somewhere_and_always_with_its_kind() -> None:
    raised = kinds_of_codes()
    assert {code: raised.get(code) for code in KIND_OF_CODE} == {
        code: {kind} for code, kind in KIND_OF_CODE.items()
    }


def test_every_code_of_the_plug_in_is_in_the_table() -> None:
    codes = {code for kind, code in scala_codes() if kind != "Bug"}
    assert {"two_queries", "state_lost"} <= codes
    assert codes - KIND_OF_CODE.keys() == set()
