"""The benchmarks' Spark process, which knows the queries with a mistake in them too."""

from __future__ import annotations

from typing import cast

from penstock_lab.experiment import driver
from penstock_lab.queries import registry
from support import wrong_queries

if __name__ == "__main__":
    cast("dict[str, registry.Factory]", registry.ALL).update(wrong_queries.ALL)
    driver.main()
