"""Request bodies of the HTTP interface, one struct each: a client encodes them, a server decodes.

Bounds are part of the types, so that decoding refuses what is out of them. What a body asks for is
told in docs/http.md; what it asks of the log is worked out by the server. A key that is not known
is refused, but for those of reports, which ask for nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from penstock.model.device_plans import PipelineBody, PlanReport
from penstock.model.numbers import Milliseconds, Number, Positive
from penstock.model.plan_notes import NOTES_MAX, PlanNoteBody

SourceNumber = Annotated[int, msgspec.Meta(ge=0, le=999)]


class StreamBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stream to make: `schema` is the base64 of an Arrow IPC message, or `ddl` says the same."""

    schema: str | None = None
    ddl: str | None = None
    substreams: Number | None = None
    key: list[str] | None = None


class AlterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`add` are columns to put at the end; 0 for an age or a size lifts that bound. `id` and
    `revision` name the stream as it was when the change was thought of."""

    add: str | None = None
    schema: str | None = None
    ddl: str | None = None
    substreams: Positive | None = None
    age_ms_max: Number | None = None
    bytes_max: Number | None = None
    id: Number | None = None
    revision: Number | None = None


class TrimBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trim's bound: `until` is the last position, or place, that may go."""

    until: Number


class InstanceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run that takes a query over, and the name its user gave the query."""

    run: str
    name: str | None = None


class ResetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run that resets a query; the same one again changes nothing."""

    run: str | None = None


class OtherStream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another input of the query that asks: something new in it ends the waiting, too."""

    stream: str
    after: Number


class AdmissionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The question how far the next batch may read one input of a query.

    `source` is the number of the source that asks, where several of the query read one stream. A
    batch of at most `inline_bytes` comes with the answer, its first `columns`, or all if null.
    """

    stream: str
    after: Number
    source: SourceNumber = 0
    query: str | None = None
    instance: Number | None = None
    rows_max: Positive | None = None
    bytes_max: Positive | None = None
    until: Number | None = None
    others: list[OtherStream] = []
    wait_ms: Number = 0
    inline_bytes: Number = 0
    columns: Positive | None = None


class OfferBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The data that wait in a source outside the log, as much as a batch may have by the user's own
    limit; null is a number that it cannot tell."""

    rows: Number | None = None
    bytes: Number | None = None
    files: Number | None = None
    age_ms: Milliseconds | None = None
    cuts_by: Literal["rows", "bytes", "files", "nothing"] = "nothing"


class BatchInputBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One source of the query that asks: `stream` and what goes with it, or `offer`."""

    source: SourceNumber
    stream: str | None = None
    after: Number = 0
    number: SourceNumber = 0
    rows_max: Positive | None = None
    bytes_max: Positive | None = None
    until: Number | None = None
    offer: OfferBody | None = None
    inline_bytes: Number = 0
    columns: Positive | None = None


class TermsBody(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True,
    rename={"counted_from": "from"},
):  # fmt: skip
    """The deadline of a query and the policy that keeps it; docs/deadlines.md says what they mean.

    Numbers that make no sense are refused by the server in a sentence, not here.
    """

    deadline_ms: float | None = None
    policy: str = "asap"
    interval_ms: float | None = None
    slide_ms: float | None = None
    importance: float = 1.0
    counted_from: str = "arrival"


class BatchReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finished batch as the driver measured it. `cut` is the number that its answer had; `rows`
    and `bytes` are what it read, null where nobody counts; `queued_ms` the time in which its jobs
    waited for cores; `core_ms` the run time of its tasks, summed; `visible_ms` the time from cut to
    visible, null where a marker tells it. `plan` is how the planned part ran."""

    cut: Number
    rows: Number | None = None
    bytes: Number | None = None
    has_data: bool = True
    queued_ms: Milliseconds = 0.0
    planning_ms: Milliseconds = 0.0
    core_ms: Milliseconds = 0.0
    longest_task_ms: Milliseconds = 0.0
    tasks: Number = 0
    visible_ms: Milliseconds | None = None
    plan: PlanReport | None = None


class BatchAdmissionBody(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The question of a query with a deadline or a policy: may its next batch begin, and how far
    may it read each of its sources? `schedule` is the order of its application's tasks.
    An answer to a question with `pipeline` has a plan. `plan_notes` are those of the run that are
    new or changed since its last question."""

    query: str
    application: str
    cores: Positive
    inputs: Annotated[list[BatchInputBody], msgspec.Meta(min_length=1, max_length=1_000)]
    terms: TermsBody
    name: str | None = None
    instance: Number | None = None
    is_first: bool = False
    must_cut: bool = False
    reports: Annotated[list[BatchReport], msgspec.Meta(max_length=1_000)] = []
    schedule: str | None = None
    wait_ms: Number = 0
    pipeline: PipelineBody | None = None
    plan_notes: Annotated[list[PlanNoteBody], msgspec.Meta(max_length=NOTES_MAX)] = []


class DeadlineBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The deadline that an operator sets for a query; null takes back what was set before."""

    deadline_ms: float | None


class WriteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries that the winning attempt of a task appended to one stream."""

    stream: str
    partition: Number
    attempt: Number
    entries: list[Number]


class FileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A checkpoint file of the batch, and the entry that holds it."""

    path: str
    entry: Number


class SnapshotFileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a snapshot, and the entries that hold its parts in order."""

    path: str
    entries: list[Number]
    file_bytes: Number
    crc32: Number


class SnapshotBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of one store after a batch."""

    folder: str
    batch: Number
    files: list[SnapshotFileBody]


class GivenPlacesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Places that were answered before they were synced: by which start, and the last of them."""

    start: Number
    last: Number


class MarkerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A marker without its query, which the path names."""

    instance: Number
    batch: Number
    writes: list[WriteBody]
    commit: str | None = None
    positions: dict[str, Number] = {}
    mode: str = "append"
    files: list[FileBody] = []
    copied: Number | None = None
    snapshots: list[SnapshotBody] | None = None
    offsets: str | None = None
    starts: list[GivenPlacesBody] | None = None


class RegisterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`start` is earliest or latest, for a consumer that is not known; or a position."""

    start: str | Number = "earliest"


class MoveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A consumer's new position in one stream, and the one it is thought to have."""

    position: Number | None = None
    expect: Number | None = None


class MovesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A consumer's moves, by stream: all of them or none."""

    streams: dict[str, MoveBody]
