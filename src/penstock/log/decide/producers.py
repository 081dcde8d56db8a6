"""Decide on room for a new producer in the filter of repeats."""

from __future__ import annotations

from penstock.errors import TryAgain
from penstock.log.plan import SilentProducer
from penstock.log.rules import PRODUCERS_KEPT
from penstock.log.view import View


def room_for_one(view: View, silent: SilentProducer | None) -> tuple[bytes, ...]:
    """The producer to forget for a new one; none while there are fewer than may be remembered.

    `silent` is the one silent longest, if there are as many as that. To forget one that may still
    send its last append again would be to append it twice, so the new one is refused instead. Under
    earlier versions it was forgotten all the same.
    """
    if silent is None:
        return ()
    rules = view.rules
    silent_ms = view.steady_ms - silent.heard_ms
    if rules.version >= PRODUCERS_KEPT and silent_ms < rules.producer_kept_ms_min:
        raise TryAgain(
            f"{rules.producers_max} producers, which is producers_max, have appended within the "
            f"last {rules.producer_kept_ms_min // 1000} s, and a new one would push out one that "
            "may still send again; try again later, append under fewer names, or raise "
            "producers_max",
            code="producers_at_bound",
        )
    return (silent.key,)
