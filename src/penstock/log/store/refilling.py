"""Whether an index is whole: payloads of a state that was loaded are filled in afterwards."""

from __future__ import annotations

from penstock.log.store.view import StoreView

REFILLING = b"refilling"
"""Under the counters: how many entries still lack their payload; not there when none does."""


def is_whole(view: StoreView) -> bool:
    """Whether every entry has its payload."""
    return view.get("counters", REFILLING) is None
