"""Ad events of the Yahoo streaming benchmark: views, clicks and purchases of ads of campaigns.

The query counts views per campaign and 10 s window; the campaign of an ad is looked up in a store
filled with `Ads.campaigns()`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.seeded import (
    BASE_TIME_MS,
    STAMP,
    Bits,
    Bytes,
    Draw,
    Ints,
    cumulative_weights,
    fixed_width_text,
    numbers,
    require,
    stamps,
    zipf_weights,
)

AD_EVENTS = pa.schema(
    [
        ("user_id", pa.string()),
        ("page_id", pa.string()),
        ("ad_id", pa.string()),
        ("ad_type", pa.string()),
        ("event_type", pa.string()),
        ("event_time", STAMP),
        ("ip_address", pa.string()),
    ]
)
CAMPAIGNS = pa.schema([("ad_id", pa.string()), ("campaign_id", pa.string())])

AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
IP_ADDRESS = "1.2.3.4"
ADS_MAX = 10_000_000
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)
_DIGIT_PLACES = np.array([place for place in range(36) if place not in _DASHES])


@dataclass(frozen=True, kw_only=True)
class AdsOptions:
    """The number of ads, and how unlike they are in popularity."""

    rate: int = 10_000
    """Events per second of event time."""
    campaigns: int = 100
    """Campaigns."""
    ads_per_campaign: int = 10
    """Ads of each campaign."""
    zipf: float = 0.0
    """Exponent of the popularity of ads: 0 is uniform, 1 gives the n-th ad 1/n of the first."""
    users: int = 100
    """Users who see ads."""
    pages: int = 100
    """Pages that show ads."""
    jitter_ms: int = 0
    """Event times are off by up to this much either way, in milliseconds; 50 with skew."""
    late_share: float = 0.0
    """Share of events that are late, 0 to 1; 0.00001 with skew."""
    late_ms_max: int = 60_000
    """How late a late event is at most, in milliseconds."""
    base_time_ms: int = BASE_TIME_MS
    """Event time of event 0, in milliseconds since the epoch."""

    def __post_init__(self) -> None:
        counts = (self.rate, self.campaigns, self.ads_per_campaign, self.users, self.pages)
        require(
            min(counts) >= 1 and self.ads <= ADS_MAX,
            f"{self} has no events; every count is 1 or more, and ads are {ADS_MAX} at most",
        )
        require(
            self.zipf >= 0
            and self.jitter_ms >= 0
            and self.late_ms_max >= 1
            and 0 <= self.late_share <= 1,
            f"{self} cannot be drawn; exponent and jitter are 0 or more, lateness 1 ms or more, a "
            "share is from 0 to 1",
        )

    @property
    def ads(self) -> int:
        return self.campaigns * self.ads_per_campaign


class Ads:
    """Ad events numbered from 0; ad 0 is the most popular."""

    schema = AD_EVENTS

    def __init__(self, options: AdsOptions | None = None, seed: int = 7) -> None:
        self.options = options if options is not None else AdsOptions()
        self.seed = seed
        self._user = Draw(seed, "ad.user")
        self._page = Draw(seed, "ad.page")
        self._ad = Draw(seed, "ad.ad")
        self._ad_type = Draw(seed, "ad.ad_type")
        self._event_type = Draw(seed, "ad.event_type")
        self._jitter = Draw(seed, "ad.jitter")
        self._is_late = Draw(seed, "ad.is_late")
        self._late = Draw(seed, "ad.late")
        self._popularity = cumulative_weights(zipf_weights(self.options.ads, self.options.zipf))

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Events `first` to `first + count - 1`."""
        options = self.options
        n = numbers(first, count)
        return pa.RecordBatch.from_arrays(
            [
                self._uuids("user", self._user.below(n, options.users)),
                self._uuids("page", self._page.below(n, options.pages)),
                self.ad_ids(self.ads_of(n)),
                pa.array(AD_TYPES).take(pa.array(self._ad_type.below(n, len(AD_TYPES)))),
                pa.array(EVENT_TYPES).take(pa.array(self._event_type.below(n, len(EVENT_TYPES)))),
                stamps(self._times_ms(n) * 1_000),
                pa.array([IP_ADDRESS]).take(pa.array(np.zeros(count, np.int64))),
            ],
            schema=AD_EVENTS,
        )

    def ads_of(self, n: Ints) -> Ints:
        """The number of the ad of each event."""
        return self._ad.weighted(n, self._popularity)

    def campaigns_of(self, ads: Ints) -> Ints:
        """The number of the campaign of each ad; the most popular ads are of different ones."""
        return ads % self.options.campaigns

    def ad_ids(self, ads: Ints) -> pa.Array:
        return self._uuids("ad", ads)

    def campaign_ids(self, campaigns: Ints) -> pa.Array:
        return self._uuids("campaign", campaigns)

    def campaigns(self) -> pa.RecordBatch:
        """Every ad with its campaign: what the store that the query looks into must hold."""
        ads = np.arange(self.options.ads, dtype=np.int64)
        columns = [self.ad_ids(ads), self.campaign_ids(self.campaigns_of(ads))]
        return pa.RecordBatch.from_arrays(columns, schema=CAMPAIGNS)

    def _times_ms(self, n: Ints) -> Ints:
        options = self.options
        time_ms = options.base_time_ms + n * 1_000 // options.rate
        if options.jitter_ms:
            time_ms += self._jitter.below(n, 2 * options.jitter_ms + 1) - options.jitter_ms
        if options.late_share:
            late_ms = self._late.below(n, options.late_ms_max) + 1
            time_ms -= np.where(self._is_late.chance(n, options.late_share), late_ms, 0)
        return time_ms

    def _uuids(self, kind: str, n: Ints) -> pa.Array:
        """A version 4 UUID for each number, made from the seed."""
        return fixed_width_text(
            _uuid_characters(
                Draw(self.seed, f"uuid.{kind}.high").bits(n),
                Draw(self.seed, f"uuid.{kind}.low").bits(n),
            )
        )


def _uuid_characters(high: Bits, low: Bits) -> Bytes:
    characters = np.full((len(high), 36), ord("-"), np.uint8)
    for half, bits in enumerate((high, low)):
        octets = bits.astype(">u8").view(np.uint8).reshape(-1, 8)
        places = _DIGIT_PLACES[16 * half : 16 * half + 16]
        characters[:, places[0::2]] = _HEX[octets >> 4]
        characters[:, places[1::2]] = _HEX[octets & 15]
    characters[:, 14] = ord("4")
    characters[:, 19] = _HEX[8 + (low >> np.uint64(62)).astype(np.int64)]
    return characters
