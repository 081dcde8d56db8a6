"""Requests and answers are structs of the model: neither side of the wire makes a dict of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from support.sources import Module, modules

ENCODERS = {"json_answer", "json_list", "json_page", "look_up_json"}


def loose_json(module: ast.AST) -> Iterator[int]:
    """Line of every dict that is sent as JSON, and of every answer read as one."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _name(node.func) in ENCODERS | {"encode"}:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            bodies = [arg.body if isinstance(arg, ast.Lambda) else arg for arg in given]
            if any(_is_dict(body) for body in bodies):
                yield node.lineno
        if isinstance(node, ast.Call) and _name(node.func) == "json" and not node.args:
            yield node.lineno
        if isinstance(node, ast.FunctionDef) and "dict[str, Any]" in _answer_of(node):
            yield node.lineno


def _answer_of(function: ast.FunctionDef) -> str:
    return "" if function.returns is None else ast.unparse(function.returns)


def _is_dict(body: ast.AST) -> bool:
    return isinstance(body, ast.Dict) or (isinstance(body, ast.Call) and _name(body.func) == "dict")


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def both_sides() -> list[Module]:
    return [
        module
        for module in modules()
        if module.layer == "client" or module.name.startswith("penstock.gateway.routes")
    ]


def test_client_and_server_share_the_structs_of_the_model() -> None:
    wrong = {m.name: lines for m in both_sides() if (lines := list(loose_json(m.tree)))}
    assert wrong == {}


@pytest.mark.parametrize(
    "code",
    [
        'json_answer({"instance": 1})',
        'json_list(request, lambda view: {"queries": []})',
        'request("GET").json()["queries"]',
        "def query(self) -> dict[str, Any]: ...",
        "msgspec.json.encode(dict(marker))",
        'msgspec.json.encode({"run": run})',
    ],
)
def test_json_without_a_struct_is_seen(code: str) -> None:
    assert list(loose_json(ast.parse(code)))
