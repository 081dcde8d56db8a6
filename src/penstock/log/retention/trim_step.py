"""One step of a trim: no more than appends may wait for, and than a full log can remove at once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.log.decide.need import need_stream
from penstock.log.decide.trims import last_trimmed
from penstock.log.operations import TrimStream
from penstock.log.reading.visible import earliest
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

STEP_BYTES = 256 << 20
"""The store writes down which pages are free: half a mebibyte for these, of `reserve_bytes`."""


class TrimStep(NamedTuple):
    """The next step of a trim, and whether nothing is left to trim after it."""

    operation: TrimStream
    is_last: bool


def trim_step(view: StoreView, whole: TrimStream, entries_max: int) -> TrimStep:
    """The next step of a trim that was asked for as a whole. Refused as that would be: who may not
    trim all of it trims nothing."""
    stream = need_stream(view, whole.stream)
    # A log that stood still for long is asked by the time of the trim, not by that of its end.
    last = last_trimmed(whole, StoreView(view.txn, view.tables, whole.now_ms or 0))
    if last is None:
        return TrimStep(whole, True)
    end = step_end(view, stream, last.lsn, entries_max)
    return TrimStep(msgspec.structs.replace(whole, until=end), end >= last.lsn)


def step_end(view: StoreView, stream: StreamRecord, until: Lsn, entries_max: int) -> Lsn:
    """The last commit of a step towards `until`: at least one, then until the step has as many
    entries as it may, or as many bytes."""
    start = earliest(view, stream)
    base = view.commit_at(stream, start)
    bytes_before = 0 if base is None else base.bytes_total
    entries = 0
    end = until
    for commit in view.commits(stream, start + 1, until):
        covered = (view.covered(stream, substream, commit.lsn) for substream in commit.substreams)
        entries += sum(len(each.entries) for each in covered if each is not None)
        end = commit.lsn
        if entries >= entries_max or commit.bytes_total - bytes_before >= STEP_BYTES:
            break
    return end
