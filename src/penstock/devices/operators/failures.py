"""Failures of a row's values: what Spark's ANSI mode refuses, said with the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from penstock.errors import BadCall


def overflow(subject: str) -> BadCall:
    return BadCall(
        f"{subject} is out of the range of its type; use a wider type or one of Spark's try_ "
        "functions, or set spark.sql.ansi.enabled to false",
        code="arithmetic_overflow",
    )


def division_by_zero() -> BadCall:
    return BadCall(
        "a row divides by zero; use try_divide, or set spark.sql.ansi.enabled to false",
        code="divide_by_zero",
    )


@contextmanager
def overflows_of(subject: str) -> Iterator[None]:
    """Arrow's refusal of a value, said as an overflow of this operation."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise overflow(subject) from error
