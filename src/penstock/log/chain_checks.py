"""What is always true of chains, as code: the part of invariants 1 and 8 that is about barriers.

1. What members write is shown up to a commit; a stream that none of them writes has no such bound.
8. A member that a barrier has not passed has read no further than it, so that what is shown
   together was made from the same input; none that has come to it is left waiting.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.log.alignment import Chain, chains
from penstock.log.chains import Line, Member
from penstock.log.reading.ends import end_of
from penstock.log.store.view import StoreView
from penstock.log.upkeep import stream_point


def chain_violations(view: StoreView) -> Iterator[str]:
    """One sentence for each."""
    told = list(chains(view.members(), view.line))
    streams = {stream for chain in told for stream in chain.lines}
    found = {line.stream for line in view.lines()}
    if streams != found:
        yield f"chains have the streams {sorted(streams)}, and lines {sorted(found)} are kept"
    for chain in told:
        for line in chain.lines.values():
            yield from _line(view, chain, line)
        for member in chain.members.values():
            yield from _member(chain, member)


def _line(view: StoreView, chain: Chain, line: Line) -> Iterator[str]:
    writers = chain.writers(line.stream)
    if (line.shown is not None) != bool(writers):
        yield f"invariant 1: {line} has the writers {[each.query for each in writers]}"
    if chain.is_in_progress and (line.place is None) != any(each.awaits for each in writers):
        yield f"invariant 8: {line} is not where its writers have left the barrier"
    if not chain.is_in_progress and line.place is not None:
        yield f"invariant 8: {line} has a barrier, and none is in progress"
    stream = view.stream(line.stream)
    if stream is None:
        return
    end, point = end_of(view, stream), view.trimmed(stream_point(stream.name))
    for place in (line.shown, line.place):
        commit = view.commit_at(stream, place or 0)
        if place and place > point and (commit is None or commit.lsn != place):
            yield f"invariant 1: {line} is not at a commit"
        if place and place > end:
            yield f"invariant 1: {line} is past the end of its stream, {end}"


def _member(chain: Chain, member: Member) -> Iterator[str]:
    if not member.awaits:
        return
    left = []
    for stream in chain.inputs(member):
        place, position = chain.lines[stream].place, member.positions[stream]
        if place is not None and position > place:
            yield f"invariant 8: {member} has read {stream} past the barrier at {place}"
        left.append(place is None or position < place)
    if not any(left):
        yield f"invariant 8: {member} has come to the barrier, which has not passed it"
