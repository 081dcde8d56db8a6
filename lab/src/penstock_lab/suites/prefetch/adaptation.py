"""The part of the prefetch suite in which the controller has to move: figure 10 of the paper.

A static join below the state begins to drop half of the rows, so hints from below it turn
inaccurate; later, reads of state get faster, so hints from a later place come in time. Both times
the controller is to move within five batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock_lab.experiment.figures import Figure, Goal
from penstock_lab.experiment.filled import (
    BACKLOG_S,
    FilledConditions,
    FilledNoted,
    FilledState,
)
from penstock_lab.experiment.state_reads import CacheReads
from penstock_lab.suites.prefetch.cells import Plan, Workload
from penstock_lab.suites.prefetch.records import Record
from penstock_lab.workloads.nexmark.order import (
    AUCTIONS_PER_EPOCH,
    EPOCH,
    FIRST_ID,
    PERSONS_PER_EPOCH,
)

QUERY = "kept_bids"
ACCURACY, TIMING = "accuracy", "timing"
SHIFTS = {
    ACCURACY: "a static join begins to drop rows",
    TIMING: "reads of state get faster",
}
MOVED_MAX = 5.0
READ_MS = 50
"""Declared: more than the slack below and above the shuffle, so that the earliest place is best."""
BATCH_ROWS = 40
"""Read in 250 ms by eight threads; hardly a key comes twice."""
DROPPED_AFTER, FASTER_AFTER, BATCHES = 40, 70, 100
"""Numbers of batches, from the first one on."""
APPENDS_PER_BATCH = 5
SPARE_BATCHES = 5
"""Not every batch is full, and the last one that is waited for must come."""
BIDS_PER_EPOCH = EPOCH - PERSONS_PER_EPOCH - AUCTIONS_PER_EPOCH
SECONDS_MAX = 300.0
HOT_PLACE = 1
"""Of the generator: the hot bidder is the person after that many."""


def workload() -> Workload:
    return Workload(QUERY, hot_share=0.0, series="adaptation")


def events_of(batches: int) -> int:
    """Events that so many batches take, whole epochs."""
    return batches * BATCH_ROWS // BIDS_PER_EPOCH * EPOCH


def persons_until(first: int) -> int:
    """Persons known when the rows of another hot bidder begin to come."""
    return (first + events_of(DROPPED_AFTER)) // EPOCH


def generator(plan: Plan, first: int) -> dict[str, Any]:
    """Options of the generator: the hot bidder changes once, after some seconds of the run."""
    return {
        **plan.generator(workload()),
        "hot_bidder_share": 0.5,
        "hot_person_every": persons_until(first),
    }


def parameters(first: int) -> dict[str, Any]:
    """Parameters of the query: the bidder who is hot after the change is not in its table."""
    return {"dropped_bidder": persons_until(first) + HOT_PLACE + FIRST_ID}


def conditions(plan: Plan, filled: FilledState) -> FilledConditions:
    """A backlog in small batches: batch by batch the same, however fast this machine is.

    A batch takes whole appends, and what is read ahead is counted in them: were a batch one append,
    all of the backlog would be in memory at once.
    """
    first = filled.next_event
    return FilledConditions(
        QUERY,
        batches=BATCHES,
        seconds_max=SECONDS_MAX,
        backlog_events=events_of(BATCHES + SPARE_BATCHES),
        rows_max=BATCH_ROWS,
        tick_ms=max(round(BACKLOG_S * 1000 / BATCHES / APPENDS_PER_BATCH), 1),
        parameters=parameters(first),
        generator=generator(plan, first),
        read_ms=READ_MS,
        is_sampled=True,
        faster_after=FASTER_AFTER,
        drain_s=SECONDS_MAX,
        stall_s=SECONDS_MAX,
        seed=plan.seed,
    )


def shifts(noted: FilledNoted) -> dict[str, int]:
    """By its name, the first batch of each change that the run came to."""
    batches: dict[str, int] = {}
    kept_bids, bids = events_of(DROPPED_AFTER) // EPOCH * BIDS_PER_EPOCH, 0
    for span in noted.batches:
        bids += span.rows
        if bids > kept_bids:
            batches[ACCURACY] = span.batch
            break
    if noted.faster_from >= 0:
        batches[TIMING] = noted.faster_from
    return batches


def batches_to_move(samples: Sequence[CacheReads], shift: int, until: int | None) -> int | None:
    """Batches from a change until a later candidate hints; None if none did before `until`."""
    before = [sample for sample in samples if sample.moved_after < shift]
    place = place_of(before[-1].active) if before else 0
    for sample in samples:
        if until is not None and sample.moved_after >= until:
            return None
        if sample.moved_after >= shift and place_of(sample.active) > place:
            return sample.moved_after - shift + 1
    return None


def unmoved(samples: Sequence[CacheReads], shift: int, until: int | None) -> float:
    """Value of a change that moved nothing: all batches after it, and never a goal that is met."""
    last = max((sample.batch for sample in samples), default=shift)
    end = last + 1 if until is None else min(until, last + 1)
    return max(MOVED_MAX + 1, float(end - shift))


def adaptation_figures(records: Sequence[Record]) -> list[Figure]:
    """Batches that each move took; of a change that moved nothing, more than it may have."""
    figures = []
    for record in records:
        if not record.is_counted:
            continue
        samples = record.filled_run.stretches
        ends = sorted(record.shifts.values())
        for name, shift in record.shifts.items():
            until = next((end for end in ends if end > shift), None)
            batches = batches_to_move(samples, shift, until)
            value = unmoved(samples, shift, until) if batches is None else float(batches)
            words = f"batches until a later candidate hints, after {SHIFTS[name]}"
            goal = Goal("at most", MOVED_MAX)
            figures.append(Figure(f"adaptation.{name}_batches", "", words, value, (), goal))
    return figures


def sentences(records: Sequence[Record]) -> list[str]:
    """The way of the active candidates in words, and changes that moved nothing."""
    lines = []
    for record in records:
        last = None
        for sample in record.filled_run.stretches:
            if sample.batch >= 0 and sample.active != last:
                place = f"hinted from {sample.active or 'nowhere'}"
                lines.append(f"batch {sample.batch}: {place}; {sample.reason}".rstrip("; "))
                last = sample.active
        ends = sorted(record.shifts.values())
        for name, shift in record.shifts.items():
            until = next((end for end in ends if end > shift), None)
            if batches_to_move(record.filled_run.stretches, shift, until) is None:
                lines.append(f"batch {shift}: {SHIFTS[name]}, and nothing moved")
    return lines


def draw_panels(axes: Sequence[Any], records: Sequence[Record], colour: str) -> None:
    """Draw active candidates and misses over the batches, with the changes as dashed lines."""
    above, below = axes
    for record in records:
        samples = [sample for sample in record.filled_run.stretches if sample.batch >= 0]
        numbers = [sample.batch for sample in samples]
        above.step(numbers, [place_of(sample.active) for sample in samples], color=colour)
        misses = [_miss_ratio(sample) for sample in samples]
        below.plot(numbers, misses, color=colour, linewidth=1.1)
        for axis in (above, below):
            for shift in record.shifts.values():
                axis.axvline(shift, color="0.4", linewidth=0.9, linestyle="--")
    above.set_yticks(range(5), ["none", "A", "B", "C", "D"])
    above.set_ylim(-0.5, 4.5)
    below.set_ylim(bottom=0)


def place_of(active: str) -> int:
    """The place of the earliest active candidate in the plan, from 1; 0 where none hints."""
    return min(("ABCD".index(name) + 1 for name in active if name in "ABCD"), default=0)


def _miss_ratio(sample: CacheReads) -> float:
    hit_ratio = sample.hit_ratio
    return 0.0 if hit_ratio is None else 1 - hit_ratio
