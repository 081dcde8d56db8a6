"""GPUs hidden from Python workers, so that what happens without one is tried on every machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

HIDDEN = {"spark.executorEnv.CUDA_VISIBLE_DEVICES": ""}
"""The setting by which the workers of a session see no device."""


@contextlib.contextmanager
def hidden_gpus(spark: SparkSession) -> Iterator[None]:
    """The session with workers that see no device: queries have theirs as they are planned."""
    context: Any = spark.sparkContext._jsc.sc()
    conf = context.conf()
    for key, value in HIDDEN.items():
        conf.set(key, value)
    try:
        yield
    finally:
        for key in HIDDEN:
            conf.remove(key)
