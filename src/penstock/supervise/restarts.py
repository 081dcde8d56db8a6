"""Restarts of a job: whether one that ended is started again, when, and else who must act."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BACKOFF_S_MAX = 30.0

# Kinds of `penstock.errors` and of the plug-in that the same job would meet again: the remedy.
FINAL = {
    "Fenced": "another run has taken the query over; stop one of the two runs",
    "BadCall": "whoever wrote the job must change the call",
    "Damaged": "an operator must restore the data, or the checkpoint that goes with the log",
}
PASSING = ("TryAgain", "Bug")

_KIND = re.compile(rf"(?<![\w.])penstock\.(?:errors\.)?({'|'.join((*FINAL, *PASSING))}): ")
# Spark shows the message of a failed query without its class; these codes have one kind only.
_CODE = re.compile(r"\[penstock: (\w+)\]")
KIND_OF_CODE = {
    **dict.fromkeys(("fenced",), "Fenced"),
    **dict.fromkeys(("damaged", "checkpoint_behind", "checkpoint_differs"), "Damaged"),
    **dict.fromkeys(
        (
            *("busy", "too_slow", "stopping", "storage_full", "unreachable", "store_unavailable"),
            *("state_lost", "run_ended", "local_space", "release_late", "commit_late"),
            *("commit_stopped", "commit_stalled", "commit_failed", "commit_died", "appends_lost"),
        ),
        "TryAgain",
    ),
    "bug": "Bug",
    **dict.fromkeys(
        (
            *("unauthorized", "forbidden", "unknown_stream", "unknown_query", "bad_request"),
            *("bad_name", "bad_schema", "bad_rows", "rows_do_not_fit", "substream_out_of_range"),
            *("position_past_end", "trimmed", "stream_differs", "schema_differs", "bad_option"),
            *("already_marked", "unknown_entries", "entry_too_large", "request_too_large"),
            *(
                "unknown_option",
                "unknown_setting",
                "no_stream",
                "bad_key",
                "bad_position",
                "no_server",
            ),
            *("two_queries", "provider_overridden", "no_plugin", "no_file_manager", "bad_setting"),
            *("cache_too_large", "no_direct_reads", "no_device", "no_gpu", "unknown_setting"),
            *("local_folder", "other_spark", "wrong_protocol", "gapped_batches", "bad_terms"),
            "format_2_with_skips",
        ),
        "BadCall",
    ),
}


@dataclass(frozen=True)
class Bounds:
    """At most `restarts_max` restarts within `window_s`; the first pause, then doubled."""

    restarts_max: int = 10
    window_s: float = 600.0
    backoff_s: float = 1.0


@dataclass(frozen=True)
class Ended:
    """End of one run of the job: exit code (negative: a signal), and its last error lines."""

    code: int
    lines: Sequence[str]
    at_s: float


@dataclass(frozen=True)
class Done:
    """The job has ended by itself, with success."""


@dataclass(frozen=True)
class Again:
    """Start the job again after a pause; `reason` says how it ended and how many tries are left."""

    after_s: float
    reason: str


@dataclass(frozen=True)
class GiveUp:
    """Do not start it again: `reason` says why, `act` who must do what."""

    reason: str
    act: str


Decision = Done | Again | GiveUp


def last_kind(lines: Sequence[str]) -> str | None:
    """The kind of the last error of Penstock's own in what the job printed; None without one.

    The last one, because an error that was met and overcome may stand before it.
    """
    for line in reversed(lines):
        kinds = _KIND.findall(line)
        if kinds:
            return str(kinds[-1])
        codes = [KIND_OF_CODE[code] for code in _CODE.findall(line) if code in KIND_OF_CODE]
        if codes:
            return codes[-1]
    return None


class Restarts:
    """Policy for one job, which remembers its failures within the window."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._failed_at_s: list[float] = []

    def decide(self, ended: Ended) -> Decision:
        """Decide on a run that has ended. A failure longer ago than the window does not count, so
        a job that ran well in between begins with the first pause again."""
        if ended.code == 0:
            return Done()
        how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
        kind = last_kind(ended.lines)
        if kind in FINAL:
            return GiveUp(
                f"it ended with {how} after a penstock.{kind}, which a restart cannot mend",
                FINAL[kind],
            )
        bounds = self._bounds
        oldest = ended.at_s - bounds.window_s
        self._failed_at_s = [at for at in self._failed_at_s if at > oldest] + [ended.at_s]
        failures = len(self._failed_at_s)
        if failures > bounds.restarts_max:
            return GiveUp(
                f"it failed {failures} times within {bounds.window_s:g} s, the last time with "
                f"{how}, and {bounds.restarts_max} restarts are the bound",
                "whoever runs the job must mend what its last lines say, then start it again",
            )
        # The exponent is bounded, since a float cannot hold two to the power of any bound given.
        pause = min(bounds.backoff_s * 2 ** min(failures - 1, 30), BACKOFF_S_MAX)
        return Again(
            pause,
            f"it ended with {how}; restart {failures} of {bounds.restarts_max} within "
            f"{bounds.window_s:g} s",
        )
