"""Whatever is named, left, taken over and trimmed: every store can be put together from the log."""

from __future__ import annotations

import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import xxhash
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendFiles, FileDraft, Mark, ResetQuery
from penstock.log.reading.recovery import file_bytes, state_of
from penstock.log.retention.due import steps
from penstock.model.ids import BatchId, FilePath, Instance, QueryId
from penstock.model.marker import FileRef, Snapshot, SnapshotFile
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import make, mark, take

Q = QueryId("q")
FOLDERS = ("state/0/0", "state/0/1/right-keyToNumValues")
SETTINGS = Settings(trim_after_ms=0, markers_kept_min=1, trim_entries_max=5)
MARKED = st.sets(st.sampled_from(FOLDERS))


class SnapshotModel(RuleBasedStateMachine):
    """One query with two stores. `named` and `changes` are what a recovery must find of each."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.clock = ManualClock()
        self.log = EmbeddedLog.open(Path(self.folder.name) / "data", Settings(), self.clock)
        self.log.run(make())
        self.runs = 0
        self.instance = Instance(0)
        self.batch = 0
        self.copied = 0
        self.named: dict[str, tuple[SnapshotFile, ...]] = {}
        self.changes: dict[str, list[str]] = {}
        self.appended: dict[str, Snapshot] = {}

    def teardown(self) -> None:
        self.log.close()
        self.folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.start_run()

    @rule()
    def take_over(self) -> None:
        self.start_run()

    def start_run(self) -> None:
        self.runs += 1
        self.instance = self.log.run(take(run=f"r{self.runs}")).instance
        self.appended = {}

    @precondition(lambda self: self.batch > 10)
    @rule()
    def reset(self) -> None:
        self.runs += 1
        self.instance = self.log.run(ResetQuery(Q, f"r{self.runs}")).instance
        self.batch = self.copied = 0
        self.named, self.changes, self.appended = {}, {}, {}

    @rule(appended=MARKED, shares=st.booleans(), named=MARKED, collects=st.booleans())
    def work(self, appended: set[str], shares: bool, named: set[str], collects: bool) -> None:
        for folder in sorted(appended):
            self.append_snapshot(folder, shares)
        self.mark_batch(named)
        self.copied = self.batch - 1
        if collects:
            self.collect()

    def append_snapshot(self, folder: str, shares: bool) -> None:
        """Of the last batch, sharing what the newest one has; a later marker may name it."""
        last = self.batch - 1
        before = self.appended.get(folder)
        known = before.files if before is not None else self.named.get(folder, ())
        if last < 0 or f"{folder}/{last + 1}.zip" in {file.path for file in known}:
            return
        shared = tuple(file for file in known if file.path.endswith(".sst")) if shares else ()
        table = self.put(f"{folder}/SSTs/{last}-{self.clock.now_ms}.sst", last)
        whole = self.put(f"{folder}/{last + 1}.zip", last)
        self.appended[folder] = Snapshot(folder, BatchId(last), (*shared, table, whole))

    def put(self, path: str, batch: int) -> SnapshotFile:
        parts = [f"{path} {self.clock.now_ms} {part}".encode() for part in range(2)]
        drafts = tuple(
            FileDraft(FilePath(path), part, xxhash.xxh3_64_intdigest(part)) for part in parts
        )
        entries = self.log.run(AppendFiles(Q, self.instance, BatchId(batch), drafts))
        data = b"".join(parts)
        return SnapshotFile(FilePath(path), tuple(entries), len(data), zlib.crc32(data))

    def mark_batch(self, folders: set[str]) -> None:
        """A batch with a change log of each store; its marker names some of what was appended."""
        due = {folder: snapshot for folder, snapshot in self.appended.items() if folder in folders}
        paths = {folder: f"{folder}/{self.batch + 1}.changelog" for folder in FOLDERS}
        refs = tuple(
            FileRef(FilePath(path), self.put(path, self.batch).entries[0])
            for path in paths.values()
        )
        plain = mark(batch=self.batch, instance=self.instance).marker
        marker = msgspec.structs.replace(plain, files=refs, snapshots=tuple(due.values()))
        self.log.run(Mark(marker, BatchId(self.copied)))
        for folder, path in paths.items():
            if folder in due:
                del self.appended[folder]
                first = due[folder].batch + 1
                kept = range(first, self.batch)
                self.named[folder] = due[folder].files
                self.changes[folder] = [f"{folder}/{number + 1}.changelog" for number in kept]
            self.changes.setdefault(folder, []).append(path)
        self.batch += 1

    @precondition(lambda self: self.batch > 5)
    @rule()
    def mark_without(self) -> None:
        """A run that keeps its snapshots in the location alone."""
        self.start_run()
        marker = mark(batch=self.batch, instance=self.instance).marker
        self.log.run(Mark(marker, BatchId(self.copied)))
        self.named, self.changes = {}, {}
        self.batch += 1
        self.start_run()

    def collect(self) -> None:
        """A few rounds: what was left over goes before markers do."""
        self.clock.turn(1)
        for _ in range(4):
            with self.log.reading() as view:
                due = steps(view, self.clock.now_ms, SETTINGS)
            for step in due:
                self.log.run(step)

    @invariant()
    def every_store_is_there(self) -> None:
        invariants.check(self.log)
        with self.log.reading() as view:
            if view.query(Q) is None:
                return
            stores = {each.folder: each for each in state_of(view, Q, "", 10, 1 << 20).stores}
            assert set(stores) == set(self.changes)
            for folder, store in stores.items():
                assert store.snapshot == self.named.get(folder, ())
                assert [each.path for each in store.changes] == self.changes[folder]
                for file in store.snapshot:
                    data = b"".join(file_bytes(view, Q, lsn) for lsn in file.entries)
                    assert (len(data), zlib.crc32(data)) == (file.file_bytes, file.crc32)


TestSnapshots = SnapshotModel.TestCase
TestSnapshots.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
