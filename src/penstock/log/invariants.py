"""The invariants of a log, as code; the numbers are those of the design.

1. Output is visible if and only if a marker covers it, or it committed itself.
3. A marker names only checkpoint files that are in the log, of its own batch and instance, each
   path once.
5. Markers of a query carry the instance of the last take-over before them, and their batches
   strictly increase.
6. The offsets recorded for a batch without a marker are found: the last ones appended.
8. A consumer sees each committed entry once, in the order of commits.
9. Nothing that somebody needs is removed: a stream is whole after its trim point, a query's task
   log from its newest marker and the first that may not be copied on; of every state store that
   has its snapshots here, the newest named one and all markers after it; what waits in no index is
   named by a marker.

Beside these, every index says what the entries say. `check` reads the whole log: it is for tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from penstock.log.backends.local import LocalLog
from penstock.log.contract import Entry, Head
from penstock.log.decide.rows import substream_of
from penstock.log.state import QueryRecord, StreamRecord, stream_point
from penstock.log.store import layout
from penstock.log.store.layout import lsn_of
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Lsn, QueryId, Substream, files_tag, offsets_batch
from penstock.model.marker import Marker, TakeOver

Shown = dict[Lsn, list[Lsn]]


def check(log: LocalLog) -> None:
    """Raise with every violation found, one sentence each."""
    with log.reading() as view:
        broken = list(violations(view))
    if broken:
        raise AssertionError("the log breaks its invariants: " + "; ".join(broken))


def violations(view: StoreView) -> Iterator[str]:
    entries = _entries(view)
    shown = _shown(view)
    yield from _order(view, entries)
    yield from _starts(view)
    yield from _tags(view, entries)
    yield from _waiting(view, entries, shown)
    yield from _visible(view, entries, shown)
    for query in view.queries():
        if query.emptying is not None:
            continue
        yield from _task_log(view, query.query, entries)
        yield from _offsets(view, query, entries)
        yield from _stores(view, query, entries)
    yield from _files(view, entries, shown)
    for stream in view.streams():
        yield from _totals(view, stream, entries)
        yield from _origins(view, stream)


def _starts(view: StoreView) -> Iterator[str]:
    """A start says nothing of places that nobody was given yet."""
    for start, below in view.starts:
        if below > view.next_lsn:
            yield f"the start {start} is said to have given all below {below}, past the end"


def _entries(view: StoreView) -> dict[Lsn, Entry]:
    with view.txn.cursor(db=view.tables["entries"]) as cursor:
        lsns = [lsn_of(key) for key in cursor.iternext(values=False)]
    entries = {}
    for lsn in lsns:
        entry = view.entry(lsn)
        if entry is not None:
            entries[lsn] = entry
    return entries


def _shown(view: StoreView) -> Shown:
    """Every entry the visible index names, with the commits that show it."""
    shown: Shown = {}
    for stream in view.streams():
        for place in range(stream.substreams):
            every = view.covered_between(stream, Substream(place), 0, (1 << 63) - 1)
            for commit, covered in every:
                for lsn in covered.entries:
                    shown.setdefault(lsn, []).append(commit)
    return shown


def _order(view: StoreView, entries: dict[Lsn, Entry]) -> Iterator[str]:
    if entries and max(entries) >= view.next_lsn:
        yield f"entry {max(entries)} is not below the next place {view.next_lsn}"
    arrived = [entry.head.arrived_at_ms for entry in entries.values()]
    if arrived != sorted(arrived):
        yield "arrival times go back"


def _tags(view: StoreView, entries: dict[Lsn, Entry]) -> Iterator[str]:
    """The index has every tag of every entry but those a trim has removed."""
    with view.txn.cursor(db=view.tables["tags"]) as cursor:
        indexed = {bytes(key) for key in cursor.iternext(values=False)}
    tagged = {layout.tag_key(tag, lsn) for lsn, entry in entries.items() for tag in entry.head.tags}
    if indexed - tagged:
        yield f"the tag index has {len(indexed - tagged)} rows that no entry has"
    for lsn, entry in entries.items():
        tags = [tag for tag in entry.head.tags if layout.tag_key(tag, lsn) in indexed]
        if not tags:
            yield f"entry {lsn} has no tag left and is still there"
        for tag in entry.head.tags:
            if tag not in tags and not _may_be_gone(view, tag, entry):
                yield f"invariant 9: entry {lsn} is not found by its tag {tag}"


def _may_be_gone(view: StoreView, tag: str, entry: Entry) -> bool:
    """Whether a trim explains that an entry is not found by a tag it has."""
    kind, _, rest = tag.partition("/")
    if kind == "s":
        return entry.head.lsn <= view.trimmed(f"s/{rest.rpartition('/')[0]}")
    if kind == "t" and entry.head.kind == "marker":
        query = view.query(QueryId(rest))
        marker = msgspec.json.decode(entry.payload, type=Marker)
        return (
            query is None
            or query.marker is None
            or marker.batch < query.trimmed
            or (view.marked(marker.query, marker.batch) != entry.head.lsn)
        )
    return entry.head.lsn <= view.trimmed(tag)


def _waiting(view: StoreView, entries: dict[Lsn, Entry], shown: Shown) -> Iterator[str]:
    """Invariant 9, of what was never committed: it waits until it is reclaimed, and only it."""
    named = {
        file.entry
        for entry in entries.values()
        if entry.head.kind == "marker"
        for file in msgspec.json.decode(entry.payload, type=Marker).files
    }
    for query in view.queries():
        named |= {lsn for store in view.stores(query.query) for lsn in store.entries}
    with view.txn.cursor(db=view.tables["waiting"]) as cursor:
        indexed = {lsn_of(key) for key in cursor.iternext(values=False)}
    expected = {
        lsn
        for lsn, entry in entries.items()
        if (entry.head.kind == "pending" and lsn not in shown)
        or (entry.head.kind == "file" and lsn not in named)
    }
    emptied = {query.query for query in view.queries() if query.emptying is not None}
    wrong = [
        lsn
        for lsn in sorted(indexed ^ expected)
        if lsn not in entries
        or not (entries[lsn].head.producer in emptied or _is_swept(view, entries[lsn].head))
    ]
    if wrong:
        yield f"invariant 9: {wrong} wait and are named, or neither"


def _is_swept(view: StoreView, head: Head) -> bool:
    """Left by a deleted stream: no longer shown, and not yet swept."""
    name = head.tags[0].removeprefix("s/").rpartition("/")[0]
    return any(each.name == name and head.lsn <= each.until for each in view.all_deleted())


def _visible(view: StoreView, entries: dict[Lsn, Entry], shown: Shown) -> Iterator[str]:
    """Invariants 1 and 8."""
    markers: dict[Lsn, Lsn] = {}
    for lsn, entry in entries.items():
        if entry.head.kind == "marker":
            for write in msgspec.json.decode(entry.payload, type=Marker).writes:
                markers.update(dict.fromkeys(write.entries, lsn))
    for lsn, entry in entries.items():
        commits = shown.get(lsn, [])
        if len(commits) > 1:
            yield f"invariant 8: entry {lsn} is visible at {commits}"
        elif _is_swept(view, entry.head):
            continue
        elif entry.head.kind == "rows":
            if not commits or not _commits_itself(entry.head, entries.get(commits[0])):
                yield f"invariant 1: entry {lsn} does not commit itself: {commits}"
        elif commits != ([markers[lsn]] if lsn in markers else []):
            yield f"invariant 1: entry {lsn} is visible at {commits}, its marker {markers.get(lsn)}"
    for lsn in shown.keys() - entries.keys():
        yield f"invariant 1: entry {lsn} is visible and not there"


def _commits_itself(head: Head, commit: Entry | None) -> bool:
    """Whether the commit is an entry of the same append: no other append lies between."""
    return (
        commit is not None
        and commit.head.kind == "rows"
        and commit.head.lsn >= head.lsn
        and (commit.head.producer, commit.head.seq) == (head.producer, head.seq)
    )


def _task_log(view: StoreView, query: str, entries: dict[Lsn, Entry]) -> Iterator[str]:
    """Invariant 5."""
    instance, batch = 0, -1
    for lsn in view.tagged(f"t/{query}"):
        entry = entries[lsn]
        if entry.head.kind == "take over":
            taken = msgspec.json.decode(entry.payload, type=TakeOver)
            if taken.instance <= instance:
                yield f"invariant 5: instance {taken.instance} of {query} follows {instance}"
            instance = taken.instance
            continue
        marker = msgspec.json.decode(entry.payload, type=Marker)
        if marker.instance != instance:
            yield f"invariant 5: instance {marker.instance} of {query} marked under {instance}"
        if marker.batch <= batch:
            yield f"invariant 5: batch {marker.batch} of {query} is marked after {batch}"
        if view.marked(marker.query, marker.batch) != lsn:
            yield f"batch {marker.batch} of {query} is not found at {lsn}"
        batch = marker.batch


def _files(view: StoreView, entries: dict[Lsn, Entry], shown: Shown) -> Iterator[str]:
    """Invariant 3, and that a file never shows as rows."""
    for lsn, entry in entries.items():
        if entry.head.kind == "file" and (entry.head.rows or lsn in shown):
            yield f"invariant 1: the file {lsn} has rows or is visible"
        if entry.head.kind != "marker":
            continue
        marker = msgspec.json.decode(entry.payload, type=Marker)
        if len({file.path for file in marker.files}) < len(marker.files):
            yield f"invariant 3: the marker {lsn} names a path twice"
        if view.marked(marker.query, marker.batch) != lsn:
            continue  # trimmed with its files, and still there for its output
        for file in marker.files:
            named = entries.get(file.entry)
            head = named.head if named is not None and file.entry < lsn else None
            facts = head and (head.kind, head.path, head.producer, head.instance, head.seq)
            if facts != ("file", file.path, marker.query, marker.instance, marker.batch):
                yield f"invariant 3: the marker {lsn} names {file}, which is {facts}"


def _offsets(view: StoreView, query: QueryRecord, entries: dict[Lsn, Entry]) -> Iterator[str]:
    """Invariant 6, and that what is marked is no longer recorded."""
    marked = query.marker.batch if query.marker is not None else -1
    expected: dict[int, Lsn] = {}
    for lsn in view.tagged(files_tag(query.query)):
        path = entries[lsn].head.path
        batch = offsets_batch(path) if path is not None else None
        if batch is not None and batch > marked:
            expected[batch] = lsn
    recorded: dict[int, Lsn] = {}
    while next_offsets := view.first_offsets(query.query, BatchId(max(recorded, default=-1) + 1)):
        recorded[next_offsets[0]] = next_offsets[1]
    if recorded != expected:
        yield f"invariant 6: the offsets of {query.query} are {expected}, and found at {recorded}"


def _stores(view: StoreView, query: QueryRecord, entries: dict[Lsn, Entry]) -> Iterator[str]:
    """Invariant 9, of what brings a state store back."""
    for store in view.stores(query.query):
        if store.needs_from < query.trimmed:
            yield f"invariant 9: change logs of {store.folder} of {query.query} are trimmed"
        for file in store.files:
            heads = [entries[lsn].head for lsn in file.entries if lsn in entries]
            if len(heads) < len(file.entries) or any(head.path != file.path for head in heads):
                yield f"invariant 9: {file.path} of {query.query} is not in {file.entries}"
            elif sum(head.payload_bytes for head in heads) != file.file_bytes:
                yield f"invariant 9: {file.path} of {query.query} is not whole"


def _totals(view: StoreView, stream: StreamRecord, entries: dict[Lsn, Entry]) -> Iterator[str]:
    point = view.trimmed(stream_point(stream.name))
    base = view.commit_at(stream, point)
    rows, size = (base.rows_total, base.bytes_total) if base is not None else (0, 0)
    if point and base is not None and base.lsn != point:
        yield f"invariant 9: {stream.name} is trimmed up to {point}, which is no commit of it"
    for commit in view.commits(stream, point + 1, (1 << 63) - 1):
        lsns = []
        for substream in commit.substreams:
            covered = view.covered(stream, substream, commit.lsn)
            if covered is None:
                yield f"commit {commit.lsn} of {stream.name} shows nothing in {substream}"
                continue
            heads = [entries[lsn].head for lsn in covered.entries if lsn in entries]
            if len(heads) != len(covered.entries):
                yield f"invariant 9: rows of commit {commit.lsn} of {stream.name} are gone"
            if any(substream_of(head) != substream for head in heads):
                yield f"commit {commit.lsn} of {stream.name} shows entries of another substream"
            lsns += list(covered.entries)
            rows += sum(head.rows for head in heads)
            size += sum(head.payload_bytes for head in heads)
        if (rows, size) != (commit.rows_total, commit.bytes_total):
            yield f"the totals of {stream.name} are wrong at {commit.lsn}"
        if any(times > 1 for times in Counter(lsns).values()):
            yield f"invariant 8: commit {commit.lsn} of {stream.name} names an entry twice"


def _origins(view: StoreView, stream: StreamRecord) -> Iterator[str]:
    """The index of origins says what the commits say, of every range that ends with one."""
    point = view.trimmed(stream_point(stream.name))
    oldest: int | None = None
    for commit in view.commits(stream, point + 1, (1 << 63) - 1):
        origin = commit.origin_at_ms
        if origin is not None:
            oldest = origin if oldest is None else min(oldest, origin)
            if origin >= commit.arrived_at_ms:
                yield f"commit {commit.lsn} of {stream.name} arrived before its origin"
        if view.oldest_origin(stream, commit.lsn - 1, commit.lsn) != origin:
            yield f"the origin of commit {commit.lsn} of {stream.name} is not in its index"
        if view.oldest_origin(stream, point, commit.lsn) != oldest:
            yield f"the oldest origin of {stream.name} up to {commit.lsn} is not found"
