"""Queries for tests beside those of the laboratory, and the answers they should have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from penstock_lab.queries import Frames, Query, Stage

PAIRS = "bidding_pairs"


def bidding_pairs() -> Query:
    """Deduplication: every pair of an auction and a bidder, once."""
    columns = "auction bigint, bidder bigint"
    return Query(PAIRS, PAIRS, (Stage(PAIRS, ("bids",), columns, _distinct),))


def _distinct(frames: Frames) -> DataFrame:
    return frames["bids"].select("auction", "bidder").dropDuplicates(["auction", "bidder"])


def pairs_expected(_: Query) -> str:
    return "select auction, bidder, min(_batch) as _batch from bids group by auction, bidder"


ALL: Mapping[str, Callable[..., Query]] = {PAIRS: bidding_pairs}
EXPECTED: Mapping[str, Callable[[Query], str]] = {PAIRS: pairs_expected}
