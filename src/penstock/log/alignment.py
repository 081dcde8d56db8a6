"""How a barrier moves through a chain: pure, from members, lines and the ends of streams alone.

A member must have come to the barrier on all its inputs before the barrier passes it. On a stream
that members write, the barrier is at the stream's end once it has passed all its writers; on any
other, at its end when the barrier began. So nothing a member may have read is ever behind it.

An input that leads back to its own reader is not waited for: it would wait for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from penstock.log.chains import Line, Member
from penstock.model.ids import BEFORE_ALL, Lsn, QueryId, StreamName

Ends = Callable[[StreamName], Lsn]


@dataclass(frozen=True)
class Chain:
    """Members that are connected through streams, and these streams.

    Who reads and writes what is the same as long as the chain lives; who awaits may change.
    """

    members: dict[QueryId, Member]
    lines: dict[StreamName, Line]

    @property
    def is_in_progress(self) -> bool:
        return any(each.awaits for each in self.members.values())

    @property
    def waits_for(self) -> list[QueryId]:
        """Those that the barrier in progress has not passed, though it has come to them."""
        return sorted(
            each.query
            for each in self.members.values()
            if each.awaits and all(self.lines[s].place is not None for s in self.inputs(each))
        )

    def writers(self, stream: StreamName) -> list[Member]:
        return [self.members[query] for query in self._writers.get(stream, ())]

    def inputs(self, member: Member) -> list[StreamName]:
        """The inputs that are waited for."""
        return self._inputs[member.query]

    @cached_property
    def _writers(self) -> dict[StreamName, list[QueryId]]:
        found: dict[StreamName, list[QueryId]] = {}
        for member in self.members.values():
            for stream in member.outputs:
                found.setdefault(stream, []).append(member.query)
        return found

    @cached_property
    def _inputs(self) -> dict[QueryId, list[StreamName]]:
        return {
            query: [s for s in member.positions if query not in self._above(s)]
            for query, member in self.members.items()
        }

    def _above(self, stream: StreamName) -> set[QueryId]:
        """Every member that the stream's rows come from, directly or not."""
        found: set[QueryId] = set()
        left = [stream]
        while left:
            for query in self._writers.get(left.pop(), ()):
                if query not in found:
                    found.add(query)
                    left += self.members[query].positions
        return found


def chains(
    members: Iterable[Member], lines: Callable[[StreamName], Line | None]
) -> Iterator[Chain]:
    """The members parted into chains, each with its streams as `lines` has them."""
    left = {each.query: each for each in members}
    users: dict[StreamName, list[Member]] = {}
    for member in left.values():
        for stream in _streams(member):
            users.setdefault(stream, []).append(member)
    while left:
        found: dict[QueryId, Member] = {}
        streams: dict[StreamName, None] = {}
        near = [next(iter(left.values()))]
        while near:
            member = near.pop()
            if left.pop(member.query, None) is None:
                continue
            found[member.query] = member
            for stream in _streams(member):
                near += users.pop(stream, ())
                streams[stream] = None
        yield Chain(found, {s: lines(s) or Line(s) for s in streams})


def _streams(member: Member) -> dict[StreamName, None]:
    return dict.fromkeys((*member.positions, *member.outputs))


def settled(chain: Chain, ends: Ends) -> Chain:
    """The chain with the barrier moved as far as it goes; complete, it is gone, and shows.

    What was visible before a stream had a writer among the members stays visible.
    """
    lines = {
        stream: replace(line, shown=_shown(chain, line, ends))
        for stream, line in chain.lines.items()
    }
    chain = Chain(dict(chain.members), lines)
    if not chain.is_in_progress and all(line.place is None for line in lines.values()):
        return chain
    while _moved(chain, ends):
        pass
    if not chain.is_in_progress:
        for stream, line in lines.items():
            lines[stream] = replace(line, place=None, shown=_completed(line))
    return chain


def _completed(line: Line) -> Lsn | None:
    """A stream may have shown more before it had a writer among the members."""
    return None if line.shown is None else max(line.shown, line.place or BEFORE_ALL)


def joined(chain: Chain, query: QueryId) -> Chain:
    """The chain that a query has just joined, waiting for it if a barrier is in progress which is
    on none of its outputs yet."""
    member = chain.members[query]
    if not chain.is_in_progress or any(chain.lines[s].place is not None for s in member.outputs):
        return chain
    return Chain({**chain.members, query: replace(member, awaits=True)}, chain.lines)


def _shown(chain: Chain, line: Line, ends: Ends) -> Lsn | None:
    if not chain.writers(line.stream):
        return None
    return ends(line.stream) if line.shown is None else line.shown


def _moved(chain: Chain, ends: Ends) -> bool:
    """Move the barrier one step; whether there was one to make."""
    has_moved = False
    for stream, line in chain.lines.items():
        if line.place is None and not any(each.awaits for each in chain.writers(stream)):
            place = max(ends(stream), line.shown or BEFORE_ALL)
            chain.lines[stream] = replace(line, place=place)
            has_moved = True
    for query, member in chain.members.items():
        if member.awaits and _has_come(chain, member):
            chain.members[query] = replace(member, awaits=False)
            has_moved = True
    return has_moved


def _has_come(chain: Chain, member: Member) -> bool:
    places = ((member.positions[s], chain.lines[s].place) for s in chain.inputs(member))
    return all(place is not None and position >= place for position, place in places)


def is_due(chain: Chain, ends: Ends) -> bool:
    """Whether a barrier should begin: none is in progress, and a member has rows to read or has
    written some that are not shown."""
    return not chain.is_in_progress and (
        any(line.shown is not None and ends(s) > line.shown for s, line in chain.lines.items())
        or any(
            ends(stream) > member.positions[stream]
            for member in chain.members.values()
            for stream in chain.inputs(member)
        )
    )


def started(chain: Chain, ends: Ends) -> Chain:
    """The chain with a barrier that has just begun, and has come as far as it can at once."""
    members = {query: replace(each, awaits=True) for query, each in chain.members.items()}
    return settled(Chain(members, chain.lines), ends)


def limit(chain: Chain, member: Member, stream: StreamName, end: Lsn) -> Lsn:
    """How far a member may read one of its inputs, whose end is `end`.

    To the barrier, until that has passed the member. Then on, unless another that the barrier has
    not passed writes to the same stream: rows from after the barrier must not come before it there.
    """
    if not chain.is_in_progress:
        return end
    if member.awaits:
        place = chain.lines[stream].place if stream in chain.lines else None
        return end if place is None else place
    if all(chain.lines[output].place is not None for output in member.outputs):
        return end
    return member.positions.get(stream, BEFORE_ALL)
