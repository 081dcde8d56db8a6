"""Decide on chains: who is aligned, and what a marker, a start or a change does to a barrier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from penstock.errors import BadCall
from penstock.log.alignment import Chain, Ends, chains, is_due, joined, limit, settled, started
from penstock.log.chains import Align, Line, Member, StartBarrier
from penstock.log.contract import StreamRecord
from penstock.log.decide.rows import check_instance
from penstock.log.reading.ends import end_of
from penstock.log.view import Chained, Plan, View
from penstock.model.ids import BEFORE_ALL, Lsn, QueryId, StreamName
from penstock.model.marker import Marker

MEMBERS_MAX = 200
"""Each marker of an aligned query looks at all of them."""


def decide_align(operation: Align, view: View, read: Mapping[StreamName, Lsn]) -> Plan:
    """The query as a member with these outputs, or no longer one. `read` is what it is known to
    read, and how far. Asking for what is so changes nothing."""
    check_instance(view, operation.query, operation.instance)
    there = view.member(operation.query)
    if not operation.outputs:
        return Plan(None, chained=departed(view, operation.query))
    if there is not None and there.outputs == operation.outputs:
        return Plan(there)
    members = {each.query: each for each in view.members()}
    if there is None and len(members) >= MEMBERS_MAX:
        raise BadCall(
            f"there are {len(members)} aligned queries, which is the bound; delete those that are "
            "over with 'penstock query delete', or use another protocol",
            code="bad_request",
        )
    if there is None:
        member = Member(operation.query, operation.outputs, dict(read))
    else:
        member = replace(there, outputs=operation.outputs)
    return Plan(member, chained=_all_settled(view, {**members, member.query: member}, member.query))


def decide_start(operation: StartBarrier, view: View) -> Plan:
    """A barrier, if one is due; who asks too late, or for a query that is not aligned, is told no
    and nothing changes."""
    chain = chain_of(view, operation.query)
    ends = _ends(view, {})
    if chain is None or not is_due(chain, ends):
        return Plan(False)
    return Plan(True, chained=_difference(view, [started(chain, ends)]))


def marked(view: View, marker: Marker, lsn: Lsn) -> Chained | None:
    """What a marker at `lsn` does to the chain of its query; None if the query is in none.

    With no barrier in progress it begins one: what a batch without new input has written is shown
    without waiting for any.
    """
    member = view.member(marker.query)
    if member is None:
        return None
    read = {StreamName(name): position for name, position in marker.positions.items()}
    moved = replace(member, positions={**member.positions, **read})
    chain = _with(view, moved)
    ends = _ends(view, {write.stream: lsn for write in marker.writes if write.entries})
    after = started(chain, ends) if is_due(chain, ends) else settled(chain, ends)
    return _difference(view, [after])


def registered(view: View, query: QueryId, stream: StreamName, at: Lsn) -> Chained | None:
    """What it does to the chain that a query begins to read a stream; None if it is in none."""
    member = view.member(query)
    if member is None or stream in member.positions:
        return None
    members = {each.query: each for each in view.members()}
    members[query] = replace(member, positions={**member.positions, stream: at})
    return _all_settled(view, members, query)


def departed(view: View, query: QueryId) -> Chained | None:
    """What it does to the chain that a query leaves it: nobody waits for it any more, and what only
    it wrote is shown."""
    if view.member(query) is None:
        return None
    return _all_settled(view, {each.query: each for each in view.members() if each.query != query})


def cut(view: View, read: Mapping[QueryId, Mapping[StreamName, Lsn]]) -> Chained | None:
    """All chains after entries were lost at the end of the log: without a barrier, nothing shown
    that is not there, and the members where their last markers left them."""
    ends = _ends(view, {})
    members = [
        replace(
            each,
            awaits=False,
            positions={
                s: min(read[each.query].get(s, BEFORE_ALL), ends(s)) for s in each.positions
            },
        )
        for each in view.members()
    ]
    lines = [
        Line(each.stream, None, None if each.shown is None else min(each.shown, ends(each.stream)))
        for each in view.lines()
    ]
    return Chained(tuple(members), tuple(lines)) if members else None


def chain_of(view: View, query: QueryId) -> Chain | None:
    """The chain that a query is in."""
    member = view.member(query)
    return None if member is None else _with(view, member)


def all_chains(view: View) -> dict[QueryId, Chain]:
    """The chain of every query that is in one."""
    found = chains(view.members(), view.line)
    return {query: chain for chain in found for query in chain.members}


def is_barrier_due(view: View, query: QueryId) -> bool:
    """Whether `StartBarrier` would begin one."""
    chain = chain_of(view, query)
    return chain is not None and is_due(chain, _ends(view, {}))


def readable_end(view: View, member: Member, stream: StreamRecord) -> Lsn:
    """How far a member may read a stream now."""
    return limit(_with(view, member), member, stream.name, end_of(view, stream))


def _with(view: View, member: Member) -> Chain:
    members = {**{each.query: each for each in view.members()}, member.query: member}
    found = chains(members.values(), view.line)
    return next(chain for chain in found if member.query in chain.members)


def _ends(view: View, commits: Mapping[StreamName, Lsn]) -> Ends:
    """The ends of streams; `commits` are those that are being decided on."""

    def end(name: StreamName) -> Lsn:
        if name in commits:
            return commits[name]
        stream = view.stream(name)
        return BEFORE_ALL if stream is None else end_of(view, stream)

    return end


def _all_settled(
    view: View, members: Mapping[QueryId, Member], joining: QueryId | None = None
) -> Chained:
    """Everything anew, after members have changed: chains may have joined or parted."""
    ends = _ends(view, {})
    found = chains(members.values(), view.line)
    now = [joined(each, joining) if joining in each.members else each for each in found]
    after = [settled(chain, ends) for chain in now]
    changed = _difference(view, after)
    lines = {stream for chain in after for stream in chain.lines}
    gone = tuple(each.stream for each in view.lines() if each.stream not in lines)
    return Chained(
        changed.members,
        changed.lines,
        (*changed.woken, *gone),
        gone_members=tuple(each.query for each in view.members() if each.query not in members),
        gone_lines=gone,
    )


def _difference(view: View, after: Iterable[Chain]) -> Chained:
    members: list[Member] = []
    lines: list[Line] = []
    woken: list[StreamName] = []
    for chain in after:
        moved = [each for each in chain.members.values() if each != view.member(each.query)]
        shifted = [each for each in chain.lines.values() if each != view.line(each.stream)]
        members += moved
        lines += shifted
        # A member may wait for a stream that it does not read: one that it writes with others.
        woken += chain.lines if moved or shifted else ()
    return Chained(tuple(members), tuple(lines), tuple(woken))
