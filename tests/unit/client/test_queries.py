"""The client's calls about queries, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from penstock.client import Client
from penstock.errors import BadCall, Fenced
from penstock.model.requests import FileBody, MarkerBody
from support.servers.processes import ServerProcess

_numbers = count()


@pytest.fixture(name="server_client")
def _server_client(shared_server: ServerProcess) -> Iterator[Client]:
    with shared_server.client() as made:
        yield made


@pytest.fixture
def query(server_client: Client) -> str:
    query = f"client-query-{next(_numbers)}"
    assert server_client.take_over(query, "r1", "hot").instance == 1
    return query


def mark(client: Client, query: str, batch: int, files: dict[str, int]) -> None:
    named = [FileBody(path, entry) for path, entry in files.items()]
    client.mark(query, MarkerBody(1, batch, [], commit="djE=", files=named))


def test_files_come_back_as_they_were_appended(server_client: Client, query: str) -> None:
    files = {"offsets/3": b"v1", "state/0/0/4.changelog": b"\x00\xff", "state/0/0/4.crc": b""}
    lsns = server_client.append_files(query, 1, 3, files)
    assert [server_client.file(query, lsn) for lsn in lsns] == list(files.values())
    assert server_client.append_files(query, 1, 3, {}) == []
    with pytest.raises(BadCall) as unknown:
        server_client.file(query, 10**12)
    assert (unknown.value.code, unknown.value.http_status) == ("unknown_entries", 404)


def test_the_checkpoint_is_told_in_order(server_client: Client, query: str) -> None:
    for batch in range(102):
        lsns = server_client.append_files(query, 1, batch, {f"offsets/{batch}": b"v1"})
        mark(server_client, query, batch, {f"offsets/{batch}": lsns[0]})
    (waiting,) = server_client.append_files(query, 1, 102, {"offsets/102": b"next"})
    first = server_client.checkpoint(query)
    assert [marker.batch for marker in first.markers] == list(range(100))
    assert first.more
    rest = server_client.checkpoint(query, after_batch=99)
    assert [marker.batch for marker in rest.markers] == [100, 101]
    assert not rest.more
    assert rest.markers[0].commit_bytes == b"v1"
    assert rest.markers[0].files[0].path == "offsets/100"
    assert rest.offsets is not None
    assert (rest.offsets.batch, rest.offsets.entry, rest.offsets.instance) == (102, waiting, 1)
    assert [marker.batch for marker in server_client.markers(query, 99)] == [100, 101]


def test_a_take_over_fences_the_run_before(server_client: Client, query: str) -> None:
    assert server_client.take_over(query, "r2").instance == 2
    assert server_client.query(query).name == "hot"
    with pytest.raises(Fenced):
        server_client.append_files(query, 1, 0, {"offsets/0": b""})
    with pytest.raises(Fenced):
        server_client.take_over(query, "r1")


def test_a_path_with_a_comma_is_refused(server_client: Client, query: str) -> None:
    with pytest.raises(BadCall) as refused:
        server_client.append_files(query, 1, 0, {"a,b": b"x"})
    assert refused.value.code == "bad_request"
