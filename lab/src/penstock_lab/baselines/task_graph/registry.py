"""The task graphs and protocols there are, by the names the tables use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, get_args

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import q4, q8
from penstock_lab.baselines.task_graph.graph import Graph

Protocol: TypeAlias = Literal["marker", "transaction", "aligned", "unsafe"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
GRAPHS: Mapping[str, Callable[[], Graph]] = {"q4": q4.graph, "q8": q8.graph}


def graph_named(name: str) -> Graph:
    if name not in GRAPHS:
        raise BadCall(
            f"there is no task graph {name!r}; there is {', '.join(GRAPHS)}", code="unknown_query"
        )
    return GRAPHS[name]()
