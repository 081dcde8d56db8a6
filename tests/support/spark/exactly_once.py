"""What must hold of the output at any moment, checked against DuckDB over the committed input."""

from __future__ import annotations

import itertools
import threading

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from penstock.client import Client
from support.spark.three_queries.expected import Row, windows_closed_by

EVENTS = "n bigint, key bigint, value bigint"
KEYS = 50
TWINS = ("lefts", "rights")
PAIRED = 5_000
"""So far apart are the numbers of two events that are joined."""
START_MS = 1_800_000_000_000
STEP_MS = 5
"""Event time between two rows: what Feeder appends at once lies within the watermark's delay."""
SLIDE_MS = 2_000


def events(first: int, count: int) -> pa.Table:
    """Rows numbered without a gap; everything else follows from the number."""
    n = range(first, first + count)
    return pa.table(
        {
            "n": pa.array(n, pa.int64()),
            "key": pa.array([(i * 7919) % KEYS for i in n], pa.int64()),
            "value": pa.array([i % 1000 for i in n], pa.int64()),
        }
    )


class Feeder:
    """Appends events at a steady rate in a thread until it is stopped."""

    def __init__(self, client: Client, rows: int = 150, every_s: float = 0.06) -> None:
        self.sent = 0
        self._client = client
        self._rows = rows
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._client.append("events", events(self.sent, self._rows))
            self.sent += self._rows


def check(client: Client, ids: dict[str, str], *, is_at_rest: bool = False) -> dict[str, int]:
    """Every query's visible output equals the oracle's over what its last marker says it read.

    Returns the number of input rows each query has committed. `is_at_rest`: all have ended by
    themselves, so that what their last batches must show is known to the row.
    """

    def committed(name: str, query: str) -> int:
        if name == "windows":
            return check_windows(client, query, is_at_rest=is_at_rest)
        if name in _CHECKS:
            return _CHECKS[name](client, query)
        return check_totals(client, query, name)

    return {name: committed(name, query) for name, query in ids.items()}


def _prefix(client: Client, query: str) -> tuple[pa.Table, int] | None:
    markers = client.markers(query)
    if not markers:
        return None
    last = markers[-1]
    position = last.positions["events"]
    return client.read("events", 0, position), last.lsn


def shown_by(client: Client, stream: str, lsn: int) -> pa.Table:
    """Rows that are visible at a marker; a stream may end before it, of batches without rows."""
    return client.read(stream, 0, min(lsn, client.position(stream)))


def check_totals(client: Client, query: str, stream: str = "totals") -> int:
    got = _prefix(client, query)
    if got is None:
        return 0
    prefix, lsn = got
    rows = client.read(stream, 0, lsn)
    # Update mode: the last row of a key is its value. A key lives in one substream, in order.
    materialised: dict[int, tuple[int, int, int]] = {
        row["key"]: (row["rows"], row["total"], row["last_n"]) for row in rows.to_pylist()
    }
    with duckdb.connect() as db:
        db.register("prefix", prefix)
        expected = {
            key: (count, total, last)
            for key, count, total, last in db.execute(
                "select key, count(*), sum(value)::bigint, max(n) from prefix group by key"
            ).fetchall()
        }
    assert materialised == expected
    return int(prefix.num_rows)


def check_copies(client: Client, query: str) -> int:
    got = _prefix(client, query)
    if got is None:
        return 0
    prefix, lsn = got
    rows = client.read("copies", 0, lsn)
    with duckdb.connect() as db:
        db.register("prefix", prefix)
        db.register("copies", rows)
        twice = db.execute(
            "select n, count(*) from copies group by n having count(*) > 1 limit 5"
        ).fetchall()
        lost = db.execute("select n, key from prefix except select n, key from copies").fetchall()
        made_up = db.execute(
            "select n, key from copies except select n, key from prefix"
        ).fetchall()
    assert (twice, lost[:5], made_up[:5]) == ([], [], [])
    return int(prefix.num_rows)


def check_twins(client: Client, query: str) -> int:
    """At every marker both streams have one row of each event that was read by then."""
    read = lsn = total = 0
    for marker in client.markers(query):
        position = marker.positions["events"]
        wanted = sorted(client.read("events", read, position)["n"].to_pylist())
        for stream in TWINS:
            assert numbers(client, stream, lsn, marker.lsn) == wanted, (stream, marker)
        read, lsn, total = position, marker.lsn, total + len(wanted)
    return total


def check_pairs(client: Client, query: str) -> int:
    """Every event that was read is there once with the one `PAIRED` numbers before it."""
    got = _prefix(client, query)
    if got is None:
        return 0
    prefix, lsn = got
    shown = shown_by(client, "pairs", lsn)
    with duckdb.connect() as db:
        db.register("prefix", prefix)
        db.register("shown", shown)
        visible = "select n, value, m, before from shown"
        paired = f"""
            select later.n, later.value, earlier.n as m, earlier.value as before
            from prefix as later join prefix as earlier on later.n = earlier.n + {PAIRED}"""
        twice = db.execute(f"{visible} group by all having count(*) > 1 limit 5").fetchall()
        lost = db.execute(f"{paired} except {visible}").fetchall()
        made_up = db.execute(f"{visible} except {paired}").fetchall()
    assert (twice, lost[:5], made_up[:5]) == ([], [], [])
    return int(prefix.num_rows)


def check_windows(client: Client, query: str, *, is_at_rest: bool = False) -> int:
    """Each window is there once, with what it has; all are that the watermark of the batch before
    the last has closed, and none that no batch's has. At rest all are there that the watermark of
    the last batch has closed: Spark ends with a batch without data, for what the one before it has
    closed."""
    markers = client.markers(query)
    if not markers:
        return 0
    positions = [0, 0, *(marker.positions["events"] for marker in markers)]
    before, closing, last = (timed(client.read("events", 0, at)) for at in positions[-3:])
    shown = shown_by(client, "windows", markers[-1].lsn)
    got = shown.select(["ends", "key", "rows", "total"])
    visible: list[Row] = [tuple(row.values()) for row in got.to_pylist()]
    assert len(set(visible)) == len(visible)
    closed = [set(windows_closed_by(seen, last, SLIDE_MS)) for seen in (before, closing)]
    assert closed[0] <= set(visible) <= closed[1]
    if is_at_rest:
        assert set(visible) == closed[1]
        assert closing.num_rows == last.num_rows
    return int(last.num_rows)


def timed(rows: pa.Table) -> pa.Table:
    """With the event time of each row, which follows from its number."""
    at_us = pc.multiply(pc.add(pc.multiply(rows["n"], STEP_MS), START_MS), 1_000)
    return rows.append_column("at", at_us.cast(pa.timestamp("us", "UTC")))


def numbers(client: Client, stream: str, after: int, until: int) -> list[int]:
    return sorted(client.read(stream, after, until)["n"].to_pylist())


class TwinsReader:
    """Reads both streams of `twins` in a thread as they grow, up to where one of them got to.

    What either shows of a batch must then be there in the other, too.
    """

    def __init__(self, client: Client) -> None:
        self.rows = 0
        """Of each stream, compared so far."""
        self._client = client
        self._at = 0
        self._stop = threading.Event()
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> TwinsReader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._failed:
            raise self._failed[0]

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.01) and not self._are_there():
                pass
            for ahead in itertools.cycle(TWINS):
                # Asked before the last look, so that nothing committed by then is left out.
                is_last = self._stop.wait(0.01)
                self._look(ahead)
                if is_last:
                    return
        except BaseException as error:
            self._failed.append(error)

    def _are_there(self) -> bool:
        return {stream.name for stream in self._client.streams()} >= set(TWINS)

    def _look(self, ahead: str) -> None:
        until = self._client.position(ahead)
        if until == self._at:
            return
        left, right = (numbers(self._client, stream, self._at, until) for stream in TWINS)
        assert left == right, f"up to {until}, where {ahead} is, the two streams differ"
        self._at = until
        self.rows += len(left)


_CHECKS = {"copies": check_copies, "twins": check_twins, "pairs": check_pairs}
