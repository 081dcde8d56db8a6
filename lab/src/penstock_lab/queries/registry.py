"""The queries by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from penstock.errors import BadCall
from penstock_lab.queries.ads import ysb
from penstock_lab.queries.cluster import cm_category, cm_category_complete, cm_job
from penstock_lab.queries.linear_road import lr_count, lr_join, lr_speed
from penstock_lab.queries.nexmark import (
    kept_bids,
    q1,
    q2,
    q3,
    q4,
    q5,
    q6,
    q7,
    q8,
    q13,
    q18,
    q19,
    q20,
)
from penstock_lab.queries.query import Query

Factory: TypeAlias = Callable[..., Query]

NEXMARK: Mapping[str, Factory] = {
    "q1": q1.query,
    "q2": q2.query,
    "q3": q3.query,
    "q4": q4.query,
    "q5": q5.query,
    "q6": q6.query,
    "q7": q7.query,
    "q8": q8.query,
    "q13": q13.query,
    "q18": q18.query,
    "q19": q19.query,
    "q20": q20.query,
}
NEXMARK_FURTHER: Mapping[str, Factory] = {"kept_bids": kept_bids.query}
"""Queries over the same streams that are not of NEXMark."""
LINEAR_ROAD: Mapping[str, Factory] = {
    "lr_join_30_1": partial(lr_join.query, range_s=30, slide_s=1),
    "lr_join_30_5": partial(lr_join.query, range_s=30, slide_s=5),
    "lr_join_30_tumbling": partial(lr_join.query, range_s=30, slide_s=30),
    "lr_speed_30_1": partial(lr_speed.query, range_s=30, slide_s=1),
    "lr_speed_30_10": partial(lr_speed.query, range_s=30, slide_s=10),
    "lr_count_30_1": partial(lr_count.query, range_s=30, slide_s=1),
    "lr_count_20_5": partial(lr_count.query, range_s=20, slide_s=5),
}
CLUSTER: Mapping[str, Factory] = {
    "cm_category_60_10": partial(cm_category.query, range_s=60, slide_s=10),
    "cm_category_60_tumbling": partial(cm_category.query, range_s=60, slide_s=60),
    "cm_job_30_1": partial(cm_job.query, range_s=30, slide_s=1),
    "cm_job_60_5": partial(cm_job.query, range_s=60, slide_s=5),
}
ADS: Mapping[str, Factory] = {"ysb": ysb.query}
ALL: Mapping[str, Factory] = {**NEXMARK, **LINEAR_ROAD, **CLUSTER, **ADS}
PAPER: Mapping[str, Factory] = {
    "lr_join_30_1_kept": partial(lr_join.query, range_s=30, slide_s=1, has_watermark=False),
    "cm_category_60_10_complete": partial(cm_category_complete.query, range_s=60, slide_s=10),
}
"""LR2 and CM1 as MiSA has them: state that is never dropped. Only the paper suite runs them."""
KNOWN: Mapping[str, Factory] = {**ALL, **NEXMARK_FURTHER, **PAPER}


def named(name: str, **parameters: object) -> Query:
    """The query of that name; `parameters` are the keyword arguments of its module's `query`."""
    factory = KNOWN.get(name)
    if factory is None:
        raise BadCall(
            f"there is no query {name}; there are {', '.join(KNOWN)}", code="unknown_query"
        )
    try:
        return factory(**parameters)
    except TypeError as error:
        raise BadCall(
            f"{name} does not take {', '.join(parameters) or 'no parameters'}: {error}",
            code="bad_request",
        ) from error
