"""The client's own retries never append twice, and never lose rows to each other."""

from __future__ import annotations

import os
import threading
from typing import Any

import pyarrow as pa
import pytest

from penstock.client import Client
from penstock.clock import Clock
from penstock.errors import BadCall, TryAgain
from penstock.model.schema import schema_of, to_base64
from support.servers.scripted_server import HANG_UP, Say, ScriptedServer, refuse, say

DDL = "n bigint, name string"
DONE = say({"position": 7, "rows": 1, "entries": [7], "duplicate": False})
ROWS = [{"n": 1, "name": "one"}]


def described() -> Say:
    counts = {"earliest": 0, "latest": 0, "rows": 0, "bytes": 0}
    return say(
        {
            "name": "s",
            "ddl": DDL,
            "schema": to_base64(schema_of(DDL)),
            "substreams": 1,
            "key": [],
            **counts,
        }
    )


def client_of(server: ScriptedServer, clock: Clock) -> Client:
    return Client(server.url, "t", deadline_s=2.0, clock=clock)


def sequences(server: ScriptedServer) -> list[tuple[str, int]]:
    return [
        (asked.headers["Penstock-Producer"], int(asked.headers["Penstock-Sequence"]))
        for asked in server.asked
        if asked.method == "POST"
    ]


def test_a_repeated_try_carries_the_same_sequence(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(described(), HANG_UP, refuse("stopping", "retry", 503), DONE)
    client = client_of(scripted, clock)
    assert client.append("s", ROWS).position == 7
    client.append("s", ROWS)
    sent = sequences(scripted)
    assert [number for _, number in sent] == [1, 1, 1, 2]
    assert len({producer for producer, _ in sent}) == 1
    assert scripted.asked[1].body == scripted.asked[2].body == scripted.asked[3].body


def test_two_clients_never_share_a_producer(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(described(), DONE)
    first_client = client_of(scripted, clock)
    first_client.append("s", ROWS)
    scripted.script(described(), DONE)
    two = client_of(scripted, clock)
    two.append_bytes("s", b"{}\n", "application/x-ndjson")
    (first, _), (second, _) = sequences(scripted)
    assert first != second


def test_an_unknown_outcome_tells_how_to_be_sure(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(described(), HANG_UP)
    with pytest.raises(TryAgain, match=r"may be there or not.*producer='\w+', sequence=1 before"):
        client_of(scripted, clock).append("s", ROWS)


def test_appends_of_many_threads_to_one_stream_arrive_in_sequence(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(described(), DONE)
    client = client_of(scripted, clock)
    client.schema("s")
    threads = [threading.Thread(target=client.append, args=("s", ROWS)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for _, number in sequences(scripted)] == list(range(1, 21))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_appends_under_an_id_of_its_own(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(described(), DONE)
    client = client_of(scripted, clock)
    client.append("s", ROWS)
    child = os.fork()
    if child == 0:
        try:
            client.append("s", ROWS)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    client.append("s", ROWS)
    (parent, parent_sequence), (other, first), (again, two) = sequences(scripted)
    assert (parent, parent_sequence, two) == (again, 1, 2)
    assert other != parent
    assert first == 1


def test_a_producer_needs_a_sequence_and_a_sequence_a_producer(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(described(), DONE)
    client = client_of(scripted, clock)
    with pytest.raises(BadCall, match="together"):
        client.append("s", ROWS, producer="mine")
    with pytest.raises(BadCall, match="together"):
        client.append("s", ROWS, sequence=4)
    client.append("s", ROWS, producer="mine", sequence=4)
    assert sequences(scripted) == [("mine", 4)]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"n": 1, "nam": "x"}], "no column nam"),
        ([{"n": "one", "name": "x"}], "do not fit"),
        (pa.table({"n": [1]}), "name"),
        (pa.table({"n": [1.5], "name": ["x"]}), "does not fit"),
        ("text", "rows are a str"),
        (7, "rows are a int"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_they_are_sent(
    scripted: ScriptedServer, clock: Clock, rows: Any, sentence: str
) -> None:
    scripted.script(described())
    with pytest.raises(BadCall, match=sentence):
        client_of(scripted, clock).append("s", rows)
    assert sequences(scripted) == []


def test_a_key_left_out_of_a_dict_is_null_and_columns_may_come_in_any_order(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(described(), DONE)
    client = client_of(scripted, clock)
    client.append("s", [{"n": 1}, {"name": "two"}])
    client.append("s", pa.table({"name": ["x"], "n": pa.array([3], pa.int32())}))
    bodies = [asked.body for asked in scripted.asked if asked.method == "POST"]
    tables = [pa.ipc.open_stream(body).read_all().to_pylist() for body in bodies]
    assert tables == [
        [{"n": 1, "name": None}, {"n": None, "name": "two"}],
        [{"n": 3, "name": "x"}],
    ]
