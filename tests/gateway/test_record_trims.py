"""Records that are trimmed over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client import Client
from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendRecord
from penstock.log.reading.record_pages import trim_bound
from penstock.model.ids import Lsn
from support.servers.http_server import Served
from support.servers.scripted_server import ScriptedServer, say


@pytest.fixture
def client(served: Served) -> Client:
    return Client(served.url, served.token)


def test_records_go_up_to_a_place_and_stay_under_their_other_tags(
    client: Client, name: str
) -> None:
    tag, other = f"{name}.a", f"{name}.b"
    lsns = [client.append_record([tag, other], b"%d" % n) for n in range(5)]
    assert client.trim_records(tag, 0) == 0
    assert client.trim_records(tag, lsns[2]) == lsns[2]
    assert client.trim_records(tag, 0) == lsns[2]
    assert [record.lsn for record in client.records(tag, lsns[2])] == lsns[3:]
    assert [record.lsn for record in client.records(other)] == lsns
    # A place past the end trims what there is, and not what comes.
    assert client.trim_records(tag, lsns[-1] + 1_000) == lsns[-1]
    last = client.append_record([tag], b"5", expect=(tag, lsns[-1]))
    assert [record.lsn for record in client.records(tag, client.trim_records(tag, 0))] == [last]


def test_one_call_trims_so_many_and_says_that_there_are_more(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "log")
    lsns = [log.run(AppendRecord(("a",), b"")) for _ in range(5)]
    with log.reading() as view:
        assert trim_bound(view, "a", lsns[-1], 4) == (lsns[3], True)
        assert trim_bound(view, "a", lsns[3], 4) == (lsns[3], False)
        assert trim_bound(view, "a", lsns[-1], 5) == (lsns[-1], False)
        assert trim_bound(view, "a", Lsn(0), 4) == (0, False)
        assert trim_bound(view, "b", lsns[-1], 4) == (lsns[-1], False)
    log.close()


def test_a_client_asks_until_all_of_it_is_trimmed() -> None:
    with ScriptedServer() as server:
        server.script(
            say({"until": 7, "entries": 10_000, "more": True}),
            say({"until": 9, "entries": 2, "more": False}),
        )
        assert Client(server.url, "t").trim_records("a", 9) == 9
        assert [request.path for request in server.asked] == ["/v1/records/trim?tag=a"] * 2


@pytest.mark.parametrize("tag", ["", "s/x/0", "t/q", "f/q"])
def test_a_tag_of_the_log_itself_is_not_trimmed_as_records(client: Client, tag: str) -> None:
    with pytest.raises(BadCall) as refused:
        client.trim_records(tag, 1)
    assert refused.value.code == "bad_tag"
