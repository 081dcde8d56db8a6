"""What always holds in a simulated world, as code; the numbers are those of the design.

1. One append commits a batch: with a log, nothing says that a batch is committed before its marker.
2. No state of a batch in the location and no output of it anywhere before its offsets are durable.
3. The order of release: offsets, every required piece, marker, commit, the next offsets.
4. At most one batch computes while the one before it is being made durable; and the location is at
   most so far behind the log.
5. Only the current instance marks.
6. Recorded offsets are never cut anew; a committed batch is neither run nor committed again.
7. The location, brought up to the last marker, is one that plain Spark can continue from; and so is
   the location alone, from an earlier batch.

Beside these, every row shown is the right one.
"""

from __future__ import annotations

from penstock.commit.events import Effect, PutCommit, PutMarker
from simulation.release.driver import Run
from simulation.release.setup import Cut, Output, Violation
from simulation.release.shared import Ground
from simulation.release.stores import Commit, Marker, Piece, load


class Checks:
    """Follows the journal of a world; `check` after every step."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.read = 0
        self.cuts: dict[int, Cut] = {}  # Released: durable for the first time, and for ever
        self.committed = -1
        self.salts: dict[int, int] = {}

    def check(self) -> None:
        journal = self.ground.journal
        changed = False
        while self.read < len(journal):
            kind, noted = journal[self.read]
            self.read += 1
            check = getattr(self, f"_on_{kind}", None)
            if check is not None:
                check(noted)
                changed = True
        if changed:
            self._continuable()

    def require(self, holds: bool, number: int, sentence: str) -> None:
        if not holds:
            raise Violation(f"invariant {number}: {sentence}")

    # One check for each kind of entry.

    def _on_offsets(self, noted: tuple[int, Cut]) -> None:
        batch, cut = noted
        known = self.cuts.setdefault(batch, cut)
        self.require(known == cut, 6, f"offsets of batch {batch} were {known}, and now {cut}")
        self.require(
            batch <= self.committed + 1, 3, f"offsets of {batch} before {batch - 1} committed"
        )
        before = self.cuts[batch - 1].end if batch else 0
        self.require(cut.start == before, 6, f"batch {batch} starts at {cut.start}, not {before}")

    def _on_piece(self, piece: Piece) -> None:
        in_log = self.ground.setup.pieces_in_log
        bound = self.committed if in_log else max(self.cuts, default=-1)
        self.require(piece.version <= bound, 2, f"state {piece.name} is in the location too early")

    def _on_snapshot(self, noted: tuple[str, int]) -> None:
        name, version = noted
        is_piece = self.ground.setup.pieces == "snapshot"
        bound = max(self.cuts, default=-1) if is_piece else self.committed
        self.require(version <= bound, 2, f"snapshot {name} is in the location too early")

    def _on_shown(self, noted: tuple[int, int, Output]) -> None:
        batch, partition, output = noted
        self.require(batch in self.cuts, 2, f"batch {batch} is shown before its offsets are safe")
        self._right(batch, partition, output)

    def _on_asked(self, noted: tuple[Run, Effect]) -> None:
        """Both acks of every required piece are in, for its newest write by each writer."""
        run, effect = noted
        if not isinstance(effect, PutMarker | PutCommit):
            return
        for piece in run.commits[effect.batch].pieces:
            writers = [w for p, w in {**run.heard, **run.acked} if p == piece]
            safe = [w for w in writers if self._is_durable(run, piece, w)]
            open_ = [w for w in writers if w not in safe and w not in run.told_lost]
            self.require(bool(safe), 3, f"{effect} without {piece} being durable")
            self.require(not open_, 3, f"{effect} while {open_} write {piece} anew")

    def _is_durable(self, run: Run, piece: str, writer: str) -> bool:
        return run.acked.get((piece, writer), 0) >= run.heard.get((piece, writer), 0)

    def _on_marker(self, marker: Marker) -> None:
        batch, log = marker.batch, self.ground.log
        self.require(
            marker.instance == log.instance, 5, f"batch {batch} marked by {marker.instance}"
        )
        self._commits(marker.commit)
        self.require(
            self.cuts.get(batch) == marker.cut, 6, f"batch {batch} marked with another cut"
        )
        for entry in marker.pieces:
            self.require(entry in log.pieces, 3, f"marker {batch} names {entry}, not in the log")
        self.require(
            tuple(entry[1] for entry in marker.pieces)
            == (marker.commit.pieces if self.ground.setup.pieces_in_log else ()),
            3,
            f"marker {batch} does not name the pieces of its commit",
        )
        for partition, rows in enumerate(marker.outputs):
            self.require(rows in log.rows, 1, f"marker {batch} names {rows}, not in the log")
            self._right(batch, partition, log.rows[rows], salted=True)

    def _on_commit(self, commit: Commit) -> None:
        """`commits/<batch>` is in the location."""
        location, batch = self.ground.location, commit.batch
        if self.ground.setup.with_log:
            self.require(batch <= self.committed, 1, f"commits/{batch} before its marker")
        else:
            self._commits(commit)
        self.require(batch in location.offsets, 3, f"commits/{batch} without its offsets")
        for piece in commit.pieces:
            is_in_location = piece in location.pieces or piece in location.snapshots
            self.require(is_in_location, 3, f"commits/{batch} in the location without {piece}")

    def _commits(self, commit: Commit) -> None:
        batch = commit.batch
        self.require(batch > self.committed, 6, f"batch {batch} commits once more")
        self.require(batch == self.committed + 1, 3, f"{batch} commits after {self.committed}")
        self.require(batch in self.cuts, 3, f"batch {batch} commits before its offsets are safe")
        self.committed = batch

    def _on_computing(self, noted: tuple[Run, int, int, int, str]) -> None:
        run, batch = noted[:2]
        self.require(
            self.committed >= batch - 2, 4, f"{batch} computes while {self.committed} is committed"
        )
        behind = self.committed - self.ground.location.last_commit()
        self.require(
            behind <= self.ground.setup.behind + 2, 4, f"the location is {behind} batches behind"
        )
        # Without a log there is no fence: two runs may both begin a batch, and one will stop.
        with_log, current = self.ground.setup.with_log, self.ground.log.instance
        if run.instance == current if with_log else not run.beside_another:
            self.require(batch > self.committed, 6, f"batch {batch} is run again")
            cut = self.cuts.get(batch, run.cuts[batch])
            self.require(run.cuts[batch] == cut, 6, f"batch {batch} of {cut} is cut anew")

    def _on_deleted(self, path: str) -> None:
        """Whether it was needed, `_continuable` sees."""

    # What is there, as a whole.

    def _right(self, batch: int, partition: int, output: Output, *, salted: bool = False) -> None:
        ground, cut = self.ground, self.cuts[batch]
        state = ground.input.state(cut.end)
        keys = ground.input.touched(cut, partition, ground.setup.partitions)
        shown = {key: value[:2] for key, (_, value) in output.items()}
        right = {key: state[key] for key in keys}
        if shown != right:
            raise Violation(f"batch {batch} shows {shown} and should show {right}")
        for key, (before, value) in output.items():
            if salted and before != self.salts.get(key, 0):
                raise Violation(f"batch {batch} was computed on state of a losing attempt")
            if salted:
                self.salts[key] = value.salt

    def _continuable(self) -> None:
        location, log = self.ground.location, self.ground.log
        last = location.last_commit()
        ahead = max(location.offsets, default=-1) - last
        self.require(ahead <= 1, 7, f"the offsets are {ahead} batches ahead of the commits")
        if last >= 0:
            self.require(last in location.offsets, 7, f"commits/{last} without its offsets")
            self._loadable(location.commits[last], {})
        if not self.ground.setup.with_log:
            self.require(last == self.committed, 7, f"the last commit is {last}")
            return
        self.require(log.last_marker() == self.committed, 7, "a marker is gone")
        pieces: dict[str, Piece] = {}
        for batch in range(last + 1, self.committed + 1):
            marker = log.markers[batch]
            for entry in marker.pieces:
                is_present = entry in log.pieces or entry[1] in location.pieces
                self.require(is_present, 7, f"neither log nor location has {entry}")
                if entry in log.pieces:
                    pieces[entry[1]] = log.pieces[entry]
        if last < self.committed:
            self._loadable(log.markers[self.committed].commit, pieces)

    def _loadable(self, commit: Commit, more: dict[str, Piece]) -> None:
        location, input = self.ground.location, self.ground.input
        loaded: dict[int, tuple[int, int]] = {}
        for name in commit.pieces:
            state = load(
                name,
                lambda piece_name: location.pieces.get(piece_name) or more.get(piece_name),
                {**location.snapshots},
            )
            if isinstance(state, str):
                raise Violation(f"invariant 7: {state} is missing for batch {commit.batch}")
            loaded.update({key: (value.rows, value.total) for key, value in state.items()})
        right = input.state(self.cuts[commit.batch].end)
        self.require(loaded == right, 7, f"state of {commit.batch} is {loaded} and not {right}")

    def at_end(self) -> None:
        """Each row of the input that was taken is in the answer once, batch by batch."""
        ground = self.ground
        last = ground.setup.batches - 1
        if self.committed != last or ground.location.last_commit() != last:
            raise Violation(f"the run ended at {self.committed} and not at {last}")
        if ground.setup.sink != "log":
            right = {(b, p) for b in range(last + 1) for p in range(ground.setup.partitions)}
            if set(ground.sink.shown) != right:
                raise Violation(f"shown are {sorted(ground.sink.shown)}")
            for (batch, partition), output in ground.sink.shown.items():
                self._right(batch, partition, output)
