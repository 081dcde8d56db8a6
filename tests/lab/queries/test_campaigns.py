"""The worker's cache of campaigns: one request for what is missing, and bounded."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock_lab.queries.ads.campaigns import Cache


class Store:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, ads: list[str]) -> list[str | None]:
        self.asked.append(ads)
        return [None if ad == "lost" else f"campaign of {ad}" for ad in ads]


def test_what_is_known_is_not_asked_again() -> None:
    cache, store = Cache(), Store()
    assert cache.campaigns(["a", "b", "a"], store) == [
        "campaign of a",
        "campaign of b",
        "campaign of a",
    ]
    cache.campaigns(["b", "c"], store)
    cache.campaigns(["a", "c"], store)
    assert store.asked == [["a", "b"], ["c"]]


def test_the_ad_not_used_for_longest_is_forgotten() -> None:
    cache, store = Cache(ads_max=2), Store()
    cache.campaigns(["a", "b"], store)
    cache.campaigns(["a", "c"], store)
    assert len(cache) == 2
    cache.campaigns(["a"], store)
    cache.campaigns(["b"], store)
    assert store.asked == [["a", "b"], ["c"], ["b"]]


def test_a_batch_larger_than_the_cache_is_answered_whole() -> None:
    cache, store = Cache(ads_max=1), Store()
    assert len(cache.campaigns(["a", "b", "c", "a"], store)) == 4
    assert len(cache) == 1


def test_an_ad_without_a_campaign_is_named() -> None:
    with pytest.raises(BadCall, match="1 ads have no campaign, the first is lost"):
        Cache().campaigns(["a", "lost"], Store())
