"""Decide on generic records and on auxiliary data: the raw log, for protocols of their own."""

from __future__ import annotations

import xxhash

from penstock.errors import BadCall
from penstock.log.contract import Entry, Head
from penstock.log.decide.producers import room_for_one
from penstock.log.operations import AppendRecord, Operation, SetAux
from penstock.log.plan import Plan, Removal
from penstock.log.rules import RECORD_WINDOW
from penstock.log.view import View
from penstock.model.ids import BEFORE_ALL, KEY_TEXT_BYTES_MAX

TAGS_MAX = 1_024
AUX_BYTES_MAX = 64 << 10
SEQ_MAX = (1 << 63) - 1

OWN_TAGS = ("s/", "t/", "f/")


def decide_record(operation: AppendRecord, view: View) -> Plan:
    """A record, in this order:

    1. a repeat is answered as it was, also when what it expected is no longer so: it was then;
    2. a sequence too old to tell is refused, because to append it could be to repeat it;
    3. the tag expected to be unchanged is looked at last, so that nothing can come between.
    """
    _check_tags(operation)
    producer = _producer(operation)
    if producer is not None and operation.seq is not None:
        recorded_at = view.recorded(producer, operation.seq)
        if recorded_at is not None:
            return Plan(recorded_at)
        _check_window(operation, view.last_recorded(producer))
    if operation.expect is not None:
        _check_expected(*operation.expect, view)
    (place,) = view.places(1)
    head = Head(
        place.lsn,
        "record",
        tuple(dict.fromkeys(operation.tags)),
        place.at_ms,
        xxhash.xxh3_64_intdigest(operation.payload),
        len(operation.payload),
        producer=operation.producer,
        instance=operation.instance,
        seq=operation.seq,
    )
    recorded, removal = None, None
    if producer is not None and operation.seq is not None:
        if view.last_recorded(producer) is None:
            silent = room_for_one(view, view.silent_recorder())
            removal = Removal(silent_recorders=silent) if silent else None
        recorded = (producer, operation.seq, place.lsn, view.steady_ms)
    entry = Entry(head, operation.payload)
    return Plan(place.lsn, (entry,), recorded=recorded, removal=removal)


def check_record(operation: Operation, bytes_max: int) -> None:
    """Refuse a record that cannot be an entry whatever the log holds, before it is queued."""
    if not isinstance(operation, AppendRecord):
        return
    _check_tags(operation)
    if len(operation.payload) > bytes_max:
        raise BadCall(
            f"the record has {len(operation.payload)} bytes, and an entry has at most {bytes_max}; "
            "split it, or raise entry_bytes_max, and max_payload of the "
            "servers where the log is in JetStream",
            code="entry_too_large",
            status=413,
        )


def decide_aux(operation: SetAux, view: View) -> Plan:
    """Auxiliary data on an entry of any kind that is there."""
    if len(operation.aux) > AUX_BYTES_MAX:
        raise BadCall(
            f"{len(operation.aux)} bytes of auxiliary data are more than {AUX_BYTES_MAX}; append "
            "them as a record and set its place",
            code="entry_too_large",
            status=413,
        )
    if view.head(operation.lsn) is None:
        raise BadCall(
            f"the entry {operation.lsn}, which auxiliary data was to be set on, is not there; name "
            "an entry that was answered and is not trimmed",
            code="unknown_entries",
            status=404,
        )
    return Plan(operation.lsn, aux=(operation.lsn, operation.aux))


def _producer(operation: AppendRecord) -> str | None:
    """Whose sequences these are. A new instance counts anew, and is told apart by a character
    that no text of a caller holds."""
    if operation.producer is None or operation.instance is None:
        return operation.producer
    return f"{operation.producer}\x01{operation.instance}"


def _check_tags(operation: AppendRecord) -> None:
    if not 1 <= len(operation.tags) <= TAGS_MAX:
        raise BadCall(
            f"a record has 1 to {TAGS_MAX} tags, not {len(operation.tags)}", code="bad_tag"
        )
    expected = () if operation.expect is None else (operation.expect[0],)
    named = () if operation.producer is None else (operation.producer,)
    for text in (*operation.tags, *expected, *named):
        size = len(text.encode("utf-8", "replace"))
        if not 1 <= size <= KEY_TEXT_BYTES_MAX or not text.isprintable():
            raise BadCall(
                f"{text[:80]!r} cannot be a tag or a producer: give 1 to {KEY_TEXT_BYTES_MAX} bytes"
                f" of printable text, not {size}",
                code="bad_tag",
            )
    for tag in operation.tags:
        if tag.startswith(OWN_TAGS):
            raise BadCall(
                f"the tag {tag!r} begins as those of streams, task logs and checkpoint files do "
                f"({', '.join(OWN_TAGS)}); choose another",
                code="bad_tag",
            )


def _check_window(operation: AppendRecord, last: int | None) -> None:
    assert operation.seq is not None  # asked for a sequenced record only
    if not 0 <= operation.seq <= SEQ_MAX:
        raise BadCall(
            f"the sequence {operation.seq} is not 0 to {SEQ_MAX}; count from 0",
            code="bad_request",
        )
    if last is not None and operation.seq <= last - RECORD_WINDOW:
        raise BadCall(
            f"the sequence {operation.seq} of the producer {operation.producer!r} is "
            f"{RECORD_WINDOW} or more below its highest, {last}, and whether it is a repeat is no "
            "longer known; keep fewer records under way",
            code="sequence_too_old",
            status=409,
        )


def _check_expected(tag: str, lsn: int, view: View) -> None:
    tail = view.tail(tag) or BEFORE_ALL
    if tail != lsn:
        raise BadCall(
            f"the last entry tagged {tag!r} is {tail}, and {lsn} was expected; read what came "
            "between and decide again",
            code="conflict",
            status=409,
        )
