"""Whether PySpark is installed here. It is an extra: a machine that runs the log needs none."""

from __future__ import annotations

import importlib.util

from penstock.errors import BadCall


def has_pyspark() -> bool:
    """Whether `import pyspark` can work; imports nothing."""
    return importlib.util.find_spec("pyspark") is not None


def need_pyspark() -> None:
    """Raise BadCall with the way to get PySpark unless it is installed."""
    if not has_pyspark():
        raise BadCall(
            "PySpark is not installed here, and this needs it; install it with: "
            "pip install 'penstock[spark]'",
            code="no_spark",
        )
