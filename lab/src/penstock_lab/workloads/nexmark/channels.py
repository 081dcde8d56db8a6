"""Channels, where a bid came from: the channel and the address of its page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.nexmark.options import NexmarkOptions
from penstock_lab.workloads.nexmark.text import ShortWords, joined
from penstock_lab.workloads.seeded import Draw, Ints, numbers

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNEL_ID_SHARE = 0.9


class Channels:
    """The big channels and the others, each with one page address for the whole run."""

    def __init__(self, options: NexmarkOptions, seed: int) -> None:
        self._hot_share = options.hot_channel_share
        self._others = options.channels
        self._is_hot = Draw(seed, "bid.is_hot_channel")
        self._channel = Draw(seed, "bid.channel")
        names = [*HOT_CHANNELS, *(f"channel-{number}" for number in range(options.channels))]
        self._names = pa.array(names)
        self._urls = _urls(seed, len(names))

    def of(self, event: Ints) -> tuple[pa.Array, pa.Array]:
        """Channel and url of each bid."""
        hot = len(HOT_CHANNELS)
        is_hot = self._is_hot.chance(event, self._hot_share)
        place = self._channel.below(event, np.where(is_hot, hot, self._others))
        index = pa.array(np.where(is_hot, place, place + hot))
        return self._names.take(index), self._urls.take(index)


def _urls(seed: int, count: int) -> pa.Array:
    n = numbers(0, count)
    folders = [ShortWords(seed, f"channel.folder{place}", 5).cut(n) for place in range(3)]
    a, b, c = folders
    page = joined("https://www.nexmark.com/", a, "/", b, "/", c, "/item.htm?query=1")
    # The big channels have no id; of the others, nine in ten.
    is_named = Draw(seed, "channel.is_named").chance(n, CHANNEL_ID_SHARE)
    is_named &= n >= len(HOT_CHANNELS)
    identity = [
        f"&channel_id={_reversed(number - len(HOT_CHANNELS))}" if named else ""
        for number, named in zip(n.tolist(), is_named.tolist(), strict=True)
    ]
    return joined(page, pa.array(identity))


def _reversed(number: int) -> int:
    """The magnitude of the 32 bits of a number read backwards, as the reference names channels."""
    backwards = int(f"{number:032b}"[::-1], 2)
    return min(backwards, 2**32 - backwards)
