"""The benchmarks' Spark process, which knows queries of the tests too, mistakes among them."""

from __future__ import annotations

from typing import cast

from penstock_lab.experiment import driver
from penstock_lab.queries import registry
from support import more_queries, wrong_queries

if __name__ == "__main__":
    for known in (registry.ALL, registry.KNOWN):
        cast("dict[str, registry.Factory]", known).update({
            **wrong_queries.ALL,
            **more_queries.ALL,
        })  # fmt: skip
    driver.main()
