"""The client and a real server, together, as docs/http.md promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest

import penstock
from penstock.client import Client, client, default
from penstock.errors import BadCall
from support.servers.processes import ServerProcess

DDL = "n bigint, name string, at timestamp"
_numbers = count()


@pytest.fixture(name="server_client")
def _server_client(shared_server: ServerProcess) -> Iterator[Client]:
    with shared_server.client() as made:
        yield made


@pytest.fixture
def stream(server_client: Client) -> str:
    return server_client.create(f"client_{next(_numbers)}", DDL, substreams=2, key="n").name


def rows(first: int, many: int) -> list[dict[str, object]]:
    return [{"n": n, "name": f"row {n}", "at": None} for n in range(first, first + many)]


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["n"].to_pylist())


def test_a_stream_is_created_once_and_found_again(server_client: Client, stream: str) -> None:
    made = server_client.create(stream, DDL)
    assert (made.substreams, made.key) == (2, ("n",))
    assert made.schema == server_client.create(stream, made.schema).schema
    assert stream in [description.name for description in server_client.streams()]
    with pytest.raises(BadCall) as refused:
        server_client.create(stream, "other string")
    assert (refused.value.code, refused.value.http_status) == ("stream_differs", 409)


def test_what_is_appended_is_read_back(server_client: Client, stream: str) -> None:
    done = server_client.append(stream, rows(0, 100))
    assert (done.rows, done.duplicate) == (100, False)
    assert server_client.position(stream) == done.position
    assert numbers(server_client.read(stream)) == list(range(100))
    assert server_client.describe(stream).rows == 100


def test_rows_between_two_positions_are_the_same_for_ever(
    server_client: Client, stream: str
) -> None:
    first = server_client.append(stream, rows(0, 5)).position
    second = server_client.append(stream, rows(5, 5)).position
    server_client.append(stream, rows(10, 5))
    assert numbers(server_client.read(stream, first, second)) == list(range(5, 10))
    assert server_client.read(stream, second, second).num_rows == 0
    assert numbers(server_client.read(stream, second)) == list(range(10, 15))


def test_substreams_share_the_rows_among_them(server_client: Client, stream: str) -> None:
    server_client.append(stream, rows(0, 100))
    parts = [server_client.read(stream, substream=k) for k in range(2)]
    assert all(part.num_rows for part in parts)
    assert numbers(pa.concat_tables(parts)) == list(range(100))


def test_a_long_read_comes_in_pieces_and_ends_where_it_began_to(
    server_client: Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(0, 200, 10):
        server_client.append(stream, rows(first, 10))
    monkeypatch.setattr(client, "ANSWER_BYTES", 2_000)
    scan = server_client.scan(stream)
    batches = [next(scan)]
    server_client.append(stream, rows(200, 10))
    batches += scan
    assert len(batches) > 5
    assert numbers(pa.Table.from_batches(batches)) == list(range(200))


def test_a_repeated_sequence_is_not_appended_again(server_client: Client, stream: str) -> None:
    once = server_client.append(stream, rows(0, 3), producer="p", sequence=7)
    again = server_client.append(stream, rows(0, 3), producer="p", sequence=7)
    assert not once.duplicate
    assert again.duplicate
    assert server_client.read(stream).num_rows == 3


def test_follow_sees_what_comes_and_where_it_stands(server_client: Client, stream: str) -> None:
    start = server_client.append(stream, rows(0, 3)).position
    stop = threading.Event()
    following = server_client.follow(stream, start, stop=stop)
    last = server_client.append(stream, rows(3, 4)).position
    seen = next(following)
    assert numbers(seen.rows) == [3, 4, 5, 6]
    assert seen.position == last
    stop.set()
    assert list(following) == []


def test_follow_moves_its_position_only_when_all_before_it_was_given(
    server_client: Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(0, 100, 10):
        server_client.append(stream, rows(first, 10))
    end = server_client.position(stream)
    monkeypatch.setattr(client, "ANSWER_BYTES", 1_000)
    seen, positions = [], []
    for piece in server_client.follow(stream, 0):
        seen.append(piece.rows)
        positions.append(piece.position)
        if piece.position == end:
            break
    assert len(positions) > 3
    assert set(positions[:-1]) == {0}
    assert numbers(pa.concat_tables(seen)) == list(range(100))


def test_the_server_s_errors_arrive_as_they_were_meant(server_client: Client, stream: str) -> None:
    with pytest.raises(BadCall) as unknown:
        server_client.read("never_made")
    assert unknown.value.code == "unknown_stream"
    with pytest.raises(BadCall) as past:
        server_client.read(stream, 0, 10**9)
    assert past.value.code == "position_past_end"


def test_a_wrong_token_is_refused(shared_server: ServerProcess) -> None:
    with Client(shared_server.url, "wrong") as stranger:
        assert stranger.health().version
        with pytest.raises(BadCall) as refused:
            stranger.streams()
    assert refused.value.code == "unauthorized"


def test_module_level_functions_use_the_current_server(
    shared_server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", shared_server.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", shared_server.token)
    default.use(None)
    name = f"client_{next(_numbers)}"
    penstock.create(name, "n bigint")
    penstock.append(name, pa.table({"n": [1, 2]}))
    assert numbers(penstock.read(name)) == [1, 2]
    stop = threading.Event()
    assert numbers(next(penstock.follow(name, 0, stop=stop)).rows) == [1, 2]


def test_what_the_server_knows_can_be_asked(server_client: Client) -> None:
    assert server_client.server().pid > 0
    assert isinstance(server_client.queries(), list)
    with pytest.raises(BadCall) as unknown:
        server_client.query("no-such-query")
    assert unknown.value.code == "unknown_query"


def test_pandas_rows_are_taken_without_their_index(server_client: Client, stream: str) -> None:
    pandas = pytest.importorskip("pandas", reason="skipped, because pandas is not installed")
    frame = pandas.DataFrame(
        {"name": ["a", "b"], "n": [1, 2], "at": pandas.to_datetime(["2024-01-01"] * 2)},
        index=[7, 8],
    )
    server_client.append(stream, frame)
    assert numbers(server_client.read(stream)) == [1, 2]
