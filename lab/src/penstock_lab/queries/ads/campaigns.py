"""Campaigns, looked up in Redis from Spark's Python workers.

A worker keeps one connection per address for as long as it lives, and the campaigns it has seen, up
to `CACHE_ADS_MAX`; beyond that it forgets the one it has not used for longest. What is not cached
is asked for in one request per Arrow batch. An ad's campaign never changes, so nothing expires.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import BadCall

CACHE_ADS_MAX = 100_000


class Cache:
    """The campaigns of the ads used last."""

    def __init__(self, ads_max: int = CACHE_ADS_MAX) -> None:
        self._ads_max = ads_max
        self._known: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def campaigns(
        self, ads: Sequence[str], ask: Callable[[list[str]], Iterable[str | None]]
    ) -> list[str]:
        """The campaign of each ad; `ask` is called once, with the ads not known, or not at all."""
        missing = [ad for ad in dict.fromkeys(ads) if ad not in self._known]
        answered = dict(zip(missing, ask(missing), strict=True)) if missing else {}
        lost = [ad for ad, campaign in answered.items() if campaign is None]
        if lost:
            raise BadCall(
                f"{len(lost)} ads have no campaign, the first is {lost[0]}; fill the store with "
                "every ad and its campaign before the query starts",
                code="unknown_ad",
            )
        answer = [str(answered[ad]) if ad in answered else self._known[ad] for ad in ads]
        for ad, campaign in zip(ads, answer, strict=True):
            self._known[ad] = campaign
            self._known.move_to_end(ad)
        while len(self._known) > self._ads_max:
            self._known.popitem(last=False)
        return answer


_CONNECTIONS: dict[str, Any] = {}
_CACHES: dict[str, Cache] = {}


def with_campaigns(address: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with `campaign_id` in place of `ad_id`, their first column."""
    cache = _CACHES.setdefault(address, Cache())
    for batch in batches:
        campaigns = cache.campaigns(batch.column(0).to_pylist(), _connection(address).mget)
        names = ["campaign_id", *batch.schema.names[1:]]
        columns = [pa.array(campaigns, pa.string()), *batch.columns[1:]]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _connection(address: str) -> Any:
    if address not in _CONNECTIONS:
        # Only a worker of this query needs the client; it is an optional dependency.
        import redis

        _CONNECTIONS[address] = redis.Redis.from_url(address, decode_responses=True)
    return _CONNECTIONS[address]
