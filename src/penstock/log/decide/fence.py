"""The fence: which instance of a query may write, and every operation that moves it.

A take-over gives the next instance; from then on the log refuses what older ones append or mark, in
the same step as the append. Resetting and deleting a query fence it too.
"""

from __future__ import annotations

import msgspec
import xxhash

from penstock.errors import BadCall, Fenced, TryAgain
from penstock.log.contract import Entry, Head
from penstock.log.decide.need import need_query
from penstock.log.decide.traces import traces, traces_step
from penstock.log.operations import DeleteQuery, ResetQuery, Taken, TakeQuery, Unfinished
from penstock.log.plan import Plan
from penstock.log.state import Emptying, QueryRecord
from penstock.log.view import View
from penstock.model.ids import Instance, QueryId, task_log_tag
from penstock.model.marker import TakeOver

NO_RUN = ""
"""No run has this name: under it the last instance of a deleted query is remembered."""


def check_instance(view: View, query: QueryId, instance: Instance) -> None:
    """The fence: `unknown_query` before the first take-over, `fenced` after a later one."""
    record = view.query(query)
    if record is None:
        raise BadCall(
            f"there is no query {query!r}; take it over first with "
            f"POST /v1/queries/{query}/instances",
            code="unknown_query",
            status=404,
        )
    if record.emptying is not None or instance != record.instance:
        raise Fenced(
            f"the query {query!r} was taken over: its instance is {record.instance} (run "
            f"{record.run}), and instance {instance} may no longer write; stop this run",
            code="fenced",
        )


def decide_take_over(operation: TakeQuery, view: View) -> Plan:
    """The next instance for a new run; the same instance for the run that holds the query.

    A run that was itself taken over is fenced, so that a repeated request arriving late does not
    take the query back from the run that replaced it.
    """
    query_record = view.query(operation.query)
    if query_record is not None and query_record.emptying is not None:
        raise TryAgain(
            f"what the query {operation.query!r} has left is being removed, a few entries at a "
            "time; try again when that is done",
            code="busy",
        )
    if query_record is not None and query_record.run == operation.run:
        return Plan(Taken(query_record.instance, query_record.marker))
    if query_record is not None and view.run_instance(operation.query, operation.run) is not None:
        raise Fenced(
            f"the run {operation.run} of the query {operation.query!r} was taken over by the run "
            f"{query_record.run} and cannot take the query back; start a new run",
            code="fenced",
        )
    # A query that was deleted counts on: an instance from before must not pass for a new one.
    before = (
        query_record.instance
        if query_record is not None
        else view.run_instance(operation.query, "") or 0
    )
    instance = Instance(before + 1)
    payload = msgspec.json.encode(TakeOver(operation.query, instance, operation.run))
    entry = control_entry(view, "take over", (task_log_tag(operation.query),), payload, instance)
    name = (
        operation.name if operation.name is not None or query_record is None else query_record.name
    )
    marker = query_record.marker if query_record is not None else None
    return Plan(
        Taken(instance, marker),
        (entry,),
        query=_taken(operation, query_record, name, instance),
        run=(operation.query, operation.run, instance),
    )


def _taken(
    operation: TakeQuery, query_record: QueryRecord | None, name: str | None, instance: Instance
) -> QueryRecord:
    if query_record is None:
        return QueryRecord(operation.query, name, instance, operation.run)
    return msgspec.structs.replace(query_record, name=name, instance=instance, run=operation.run)


def control_entry(
    view: View,
    kind: str,
    tags: tuple[str, ...],
    payload: bytes,
    instance: Instance,
    seq: int | None = None,
) -> Entry:
    """An entry of a task log, at the next place."""
    (place,) = view.places(1)
    head = Head(
        place.lsn,
        "marker" if kind == "marker" else "take over",
        tags,
        place.at_ms,
        xxhash.xxh3_64_intdigest(payload),
        len(payload),
        instance=instance,
        seq=seq,
    )
    return Entry(head, payload)


def decide_reset(operation: ResetQuery, view: View) -> Plan:
    """A take-over, after which the query has no batches: the next one marked is any it likes.

    A run that has done this before is answered as it was, also after it was taken over itself: the
    query that is there then is not the one it was to reset.
    """
    record = need_query(view, operation.query)
    instance = view.run_instance(operation.query, operation.run)
    below = None
    if record.emptying == "reset" and record.run == operation.run:
        # Nothing has been appended since the first step, whose take-over stays.
        taken, below = Plan(Taken(record.instance, None)), view.tail(task_log_tag(record.query))
    elif instance is not None:
        return Plan(Taken(instance, None))
    else:
        taken = decide_take_over(TakeQuery(operation.query, operation.run, None), view)
    assert isinstance(taken.answer, Taken)
    fresh = QueryRecord(operation.query, record.name, taken.answer.instance, operation.run)
    step = traces_step(view, operation.query, operation.entries_max, below)
    if step is not None:
        fresh = msgspec.structs.replace(fresh, emptying="reset")
    return Plan(
        Taken(taken.answer.instance, None) if step is None else Unfinished(len(step.tags)),
        taken.entries,
        query=fresh,
        run=taken.run,
        removal=traces(view, operation.query, below) if step is None else step,
    )


def decide_delete_query(operation: DeleteQuery, view: View) -> Plan:
    """The query, its task log, checkpoint files and whatever of it was never committed."""
    if operation.instance is not None:
        deleted = view.run_instance(operation.query, NO_RUN)
        if deleted is not None and deleted >= operation.instance:
            return Plan(None)
    record = need_query(view, operation.query)
    if operation.instance not in (None, record.instance):
        raise BadCall(
            f"the query {operation.query!r} was taken over: its instance is {record.instance} (run "
            f"{record.run}), and instance {operation.instance} was to be deleted; look at it, and "
            "ask again if it is still to go",
            code="conflict",
            status=409,
        )
    step = traces_step(view, operation.query, operation.entries_max)
    if step is not None:
        why: Emptying = "delete" if operation.remember else "forget"
        left = QueryRecord(operation.query, record.name, record.instance, record.run, emptying=why)
        return Plan(Unfinished(len(step.tags)), query=left, removal=step)
    removal = traces(view, operation.query)
    runs = tuple((operation.query, each.run) for each in view.runs(operation.query) if each.run)
    # Of one that is not remembered nothing is: a batch write of which each has an id of its own.
    points = removal.points if operation.remember else ()
    removal = msgspec.structs.replace(removal, points=points, query=operation.query, runs=runs)
    kept = (operation.query, NO_RUN, record.instance) if operation.remember else None
    return Plan(record, removal=removal, run=kept)
