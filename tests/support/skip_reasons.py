"""Reasons for which several tests are skipped. Every reason begins with the same two words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

OPENING = "skipped, because "
NO_GPU = f"{OPENING}there is no GPU"
NO_MATPLOTLIB = f"{OPENING}matplotlib is not installed"
NO_NATS = f"{OPENING}there is no nats-server here: install Debian's nats-server"
NO_REDIS = (
    f"{OPENING}there is no redis-server or no client for it here: install Debian's "
    "redis-server, and the extra `redis`"
)

# The place of the reason among the arguments; None: it is only ever named.
_SKIPPING: dict[str, int | None] = {"skip": 0, "skipif": None, "importorskip": None}


def other_reasons(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and reason of every test that is skipped in other words, or in none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not ast.unparse(node.func).startswith("pytest.") or node.func.attr not in _SKIPPING:
                continue
            reason = _reason(node, _SKIPPING[node.func.attr])
            if reason is None or not _text(reason).startswith(OPENING):
                yield node.lineno, "no reason" if reason is None else ast.unparse(reason)


def _reason(call: ast.Call, place: int | None) -> ast.expr | None:
    named = (keyword.value for keyword in call.keywords if keyword.arg in ("reason", "msg"))
    return call.args[place] if place is not None and call.args[place:] else next(named, None)


def _text(reason: ast.expr) -> str:
    """The beginning of a text as it is written, with the reasons of this file put in."""
    match reason:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return str(globals().get(name, ""))
        case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_] | [first, *_]):
            return _text(first)
        case _:
            return ""
