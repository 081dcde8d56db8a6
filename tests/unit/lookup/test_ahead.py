"""Reading ahead of a real server: keys of rows that wait are fetched before a task needs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.client import Client
from penstock.lookup.ahead import AheadSource, ReadAhead
from penstock.lookup.lookup import Lookup
from penstock.prefetch.value_cache import ValueCache
from support.lookup_stores import HeldStore
from support.servers.processes import ServerProcess, wait_until

_numbers = count()
ROOMY = 1 << 20


@pytest.fixture(name="client")
def _client(shared_server: ServerProcess) -> Iterator[Client]:
    with shared_server.client() as client:
        yield client


@pytest.fixture
def stream(client: Client) -> str:
    return client.create(f"ahead_{next(_numbers)}", "key string, kind string").name


class Reading:
    """A look-up and its reader over one stream."""

    def __init__(
        self,
        client: Client,
        stream: str,
        rows: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
        *,
        bytes_max: int = ROOMY,
        idle_s: float = 60.0,
    ) -> None:
        self.store = HeldStore()
        self.lookup = Lookup(self.store, ValueCache("timestamp", bytes_max), timeout_s=60.0)
        source = AheadSource(stream, client.address, rows, "key", None)
        self.reader = ReadAhead(source, self.lookup, idle_s=idle_s)

    def hinted(self) -> int:
        return self.lookup._counts.hints

    def close(self) -> None:
        self.reader.close()
        self.lookup.close()


@pytest.fixture
def reading(client: Client, stream: str) -> Iterator[Callable[..., Reading]]:
    made: list[Reading] = []

    def make(**options: object) -> Reading:
        made.append(Reading(client, stream, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.close()


def append(client: Client, stream: str, *keys: str, kind: str = "view") -> int:
    return client.append(stream, [{"key": key, "kind": kind} for key in keys]).position


def test_rows_that_wait_are_fetched_before_a_task_asks(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    client.register("query", stream, "earliest")
    append(client, stream, "a", "b")
    here = reading()
    here.reader.note_task("query")
    wait_until("the backlog is fetched", lambda: here.lookup._counts.prefetched == 2)
    append(client, stream, "c", "a")
    wait_until("new rows are fetched", lambda: here.lookup._counts.prefetched == 3)
    rows, _, on_path = here.lookup.answer(here.lookup.ask(["a", "b", "c"], [0, 0, 0]))
    assert (rows, on_path) == ([(f"value of {key}",) for key in "abc"], 0)
    assert here.lookup.take_counts().misses == 0


def test_a_reader_of_a_query_that_nobody_knows_begins_with_what_comes(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    append(client, stream, "before")
    here = reading()
    here.reader.note_task(None)

    def sees_what_comes() -> bool:
        append(client, stream, "after")
        return here.hinted() > 0

    wait_until("it follows", sees_what_comes)
    assert all(keys == ["after"] for keys in here.store.asked)


def test_filters_between_the_stream_and_the_look_up_are_applied(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    client.register("query", stream, "earliest")
    append(client, stream, "a", kind="click")
    append(client, stream, "b")
    here = reading(rows=lambda rows: rows.filter(pc.equal(rows.column("kind"), "view")))
    here.reader.note_task("query")
    wait_until("it is fetched", lambda: here.lookup._counts.prefetched == 1)
    assert here.store.asked == [["b"]]


def test_hints_wait_while_the_cache_is_full_of_what_was_not_read(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    client.register("query", stream, "earliest")
    for number in range(40):
        append(client, stream, f"key {number}")
    here = reading(bytes_max=4_000)
    here.reader.note_task("query")
    wait_until("the room is used up", lambda: not here.lookup.has_room_for_hints)
    waiting_at = here.lookup._counts.prefetched
    assert waiting_at < 40
    for _ in range(3):  # batches that read none of it
        here.lookup.begin_batch()
    wait_until("it goes on", lambda: here.lookup._counts.prefetched > waiting_at)


def test_a_reader_ends_without_tasks_and_starts_with_the_next(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    client.register("query", stream, "earliest")
    here = reading(idle_s=0.2)
    here.reader.note_task("query")
    wait_until("it has ended", lambda: here.reader._thread is None)
    append(client, stream, "a")

    def is_fetched() -> bool:
        here.reader.note_task("query")
        return here.lookup._counts.prefetched == 1

    wait_until("it reads again", is_fetched)


def test_a_function_that_fails_ends_reading_ahead_and_nothing_else(
    client: Client, stream: str, reading: Callable[..., Reading]
) -> None:
    client.register("query", stream, "earliest")
    append(client, stream, "a")
    here = reading(rows=lambda rows: rows.select(["no such column"]))
    here.reader.note_task("query")
    wait_until("it says why", lambda: bool(here.reader.error))
    assert "no such column" in here.reader.error
    here.reader.note_task("query")
    assert here.lookup.answer(here.lookup.ask(["a"], [0]))[0] == [("value of a",)]


def test_a_server_that_goes_away_is_tried_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = ServerProcess(tmp_path_factory.mktemp("ahead-server")).start()
    with server.client() as client:
        client.create("rows", "key string, kind string")
        client.register("query", "rows", "earliest")
        here = Reading(client, "rows")
        here.reader.note_task("query")
        append(client, "rows", "a")
        wait_until("it is fetched", lambda: here.lookup._counts.prefetched == 1)
        server.kill()
        time.sleep(0.1)
        server.start()
        append(client, "rows", "b")
        wait_until("it follows again", lambda: here.lookup._counts.prefetched == 2)
        here.close()
    server.stop()
