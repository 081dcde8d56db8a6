"""Ad events: popularity of ads, campaigns, and times."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from penstock.errors import BadCall
from penstock_lab.workloads.ads import AD_EVENTS, AD_TYPES, CAMPAIGNS, EVENT_TYPES, Ads, AdsOptions
from support.ranges import COUNTS, FIRSTS, SEEDS, column, cut_in_two, fingerprint, whole

MANY = 100_000
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@cache
def ad_events() -> pa.RecordBatch:
    return Ads().events(0, MANY)


def times_ms(rows: pa.RecordBatch) -> Any:
    return rows.column("event_time").cast(pa.int64()).to_numpy() // 1_000 - 1_436_918_400_000


@settings(max_examples=40, deadline=None)
@given(SEEDS, FIRSTS, COUNTS, COUNTS)
def test_a_range_is_the_same_however_it_is_cut(seed: int, first: int, count: int, at: int) -> None:
    events = Ads(AdsOptions(zipf=1, jitter_ms=50, late_share=0.1), seed).events
    assert cut_in_two(events, first, count, at).equals(whole(events, first, count))


def test_events_made_once_can_be_made_again_by_later_versions() -> None:
    assert fingerprint(Ads(AdsOptions(zipf=0.9)).events(100_000, 1_000)) == "1d6bca30d10d"


def test_the_columns_are_those_of_the_benchmark() -> None:
    assert ad_events().schema == AD_EVENTS
    assert set(column(ad_events(), "ip_address")) == {"1.2.3.4"}
    for name in ("user_id", "page_id", "ad_id"):
        assert all(UUID.fullmatch(str(value)) for value in set(column(ad_events(), name))), name


def test_users_pages_and_types_are_uniform() -> None:
    for name, kinds in (
        ("user_id", 100),
        ("page_id", 100),
        ("ad_id", 1_000),
        ("ad_type", len(AD_TYPES)),
        ("event_type", len(EVENT_TYPES)),
    ):
        counts = Counter(column(ad_events(), name))
        assert len(counts) == kinds, name
        assert max(counts.values()) < 1.6 * MANY / kinds, name


def test_a_third_of_the_events_are_views() -> None:
    assert abs(Counter(column(ad_events(), "event_type"))["view"] / MANY - 1 / 3) < 0.01


def test_every_ad_belongs_to_one_of_a_hundred_campaigns_of_ten() -> None:
    campaigns = Ads().campaigns()
    assert campaigns.schema == CAMPAIGNS
    assert len(set(column(campaigns, "ad_id"))) == 1_000
    assert set(Counter(column(campaigns, "campaign_id")).values()) == {10}
    assert len(set(column(campaigns, "campaign_id"))) == 100
    assert set(column(ad_events(), "ad_id")) <= set(column(campaigns, "ad_id"))


def test_the_campaign_of_an_event_can_be_had_without_the_table() -> None:
    ads = Ads()
    n = np.arange(500, dtype=np.int64)
    table = {row["ad_id"]: row["campaign_id"] for row in ads.campaigns().to_pylist()}
    looked_up = [table[ad] for ad in column(ads.events(0, 500), "ad_id")]
    assert looked_up == ads.campaign_ids(ads.campaigns_of(ads.ads_of(n))).to_pylist()


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_popularity_falls_with_the_power_of_the_rank(exponent: float) -> None:
    ads = Ads(AdsOptions(zipf=exponent))
    drawn = ads.ads_of(np.arange(400_000, dtype=np.int64))
    shares = np.bincount(drawn, minlength=1_000) / 400_000
    expected = np.arange(1, 1_001) ** -exponent
    expected /= expected.sum()
    assert np.all(np.abs(shares[:5] - expected[:5]) < 0.003)
    assert abs(shares[500:].sum() - expected[500:].sum()) < 0.003


def test_event_times_follow_the_rate() -> None:
    assert np.all(times_ms(ad_events()) == np.arange(MANY) // 10)


def test_with_skew_times_are_off_a_little_and_a_few_are_late() -> None:
    skewed = Ads(AdsOptions(jitter_ms=50, late_share=0.001)).events(0, MANY)
    off = times_ms(skewed) - np.arange(MANY) // 10
    late = off < -50
    assert off[~late].min() == -50
    assert off[~late].max() == 50
    assert 50 < late.sum() < 150
    assert off.min() >= -60_050


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadCall, match="every count is 1 or more"):
        AdsOptions(campaigns=0)
    with pytest.raises(BadCall, match="exponent and jitter are 0 or more"):
        AdsOptions(zipf=-1)
