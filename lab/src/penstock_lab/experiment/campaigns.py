"""Fills the store that the ysb query looks campaigns up in."""

from __future__ import annotations

from penstock.errors import TryAgain
from penstock_lab.workloads.ads import Ads


def fill(url: str, seed: int) -> None:
    """Every ad with its campaign, in one request; what was there under those keys is replaced."""
    # An optional dependency, and asked for before this is called.
    import redis

    rows = Ads(seed=seed).campaigns().to_pydict()
    store = redis.Redis.from_url(url)
    try:
        store.mset(dict(zip(rows["ad_id"], rows["campaign_id"], strict=True)))
    except redis.RedisError as error:
        raise TryAgain(
            f"the campaigns could not be put into Redis at {url}: {error}", code="redis_failed"
        ) from error
    finally:
        store.close()
