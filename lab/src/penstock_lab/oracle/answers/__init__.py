"""Answers each query should have written, as SQL over the tables of `committed`.

Written apart from the queries, in other words and from their description, so that a slip in one
is not repeated in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from penstock.errors import BadCall
from penstock_lab.oracle.answers import ads, cluster, demo, linear_road, nexmark
from penstock_lab.queries import Query, Stage

Answer: TypeAlias = Callable[[Query], str]

EXPECTED: Mapping[str, Answer] = {
    "q1": nexmark.q1,
    "q2": nexmark.q2,
    "q3": nexmark.q3,
    "q4_changes": nexmark.q4_changes,
    "q4": nexmark.q4,
    "q5": nexmark.q5,
    "q6_winners": nexmark.q6_winners,
    "q6": nexmark.q6,
    "q7": nexmark.q7,
    "q8": nexmark.q8,
    "q13": nexmark.q13,
    "q18": nexmark.q18,
    "q19": nexmark.q19,
    "q20": nexmark.q20,
    "kept_bids": nexmark.kept_bids,
    "lr_join": linear_road.lr_join,
    "lr_speed": linear_road.lr_speed,
    "lr_count": linear_road.lr_count,
    "cm_category": cluster.cm_category,
    "cm_category_complete": cluster.cm_category_complete,
    "cm_job": cluster.cm_job,
    "ysb": ads.ysb,
    "auction_totals": demo.auction_totals,
    "category_leaders": demo.category_leaders,
}
TRUTHS: Mapping[str, Answer] = {
    "q4": nexmark.q4_truth,
    "q6": nexmark.q6_truth,
    "category_leaders": demo.category_leaders_truth,
}


def expected(query: Query, stage: Stage) -> str:
    """The rows the stage should have written, each with its `_batch`."""
    # A query of one stage carries its window in its name; the text is the family's.
    name = query.family if stage.name == query.name else stage.name
    return _answer(EXPECTED, name)(query)


def truth(query: Query) -> str:
    """The view of a chain over what its first stage had read up to the batch `upto`."""
    return _answer(TRUTHS, query.family)(query)


def _answer(answers: Mapping[str, Answer], name: str) -> Answer:
    answer = answers.get(name)
    if answer is None:
        raise BadCall(
            f"there is no oracle for {name}; there is one for {', '.join(answers)}",
            code="unknown_query",
        )
    return answer
