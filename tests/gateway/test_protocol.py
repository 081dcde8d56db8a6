"""Servers and plug-ins of different versions refuse each other by the protocol's number."""

from __future__ import annotations

import pytest

from penstock.client import Client
from penstock.errors import BadCall
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from support.servers.earlier_server import EARLIER, EarlierServer
from support.servers.http_server import Served


def test_every_answer_names_the_protocol_refusals_too(served: Served) -> None:
    for path, token in (("/health", ""), ("/server", ""), ("/server", None), ("/nowhere", "")):
        assert served.ask("GET", path, token=token).headers[PROTOCOL_HEADER] == str(PROTOCOL)
    assert served.ask("GET", "/health").json()["protocol"] == PROTOCOL


@pytest.mark.parametrize("number", ["1", EARLIER, str(PROTOCOL + 1), "two"])
def test_a_request_of_another_protocol_is_refused_with_both_numbers(
    served: Served, number: str
) -> None:
    answer = served.ask("GET", "/streams", Penstock_Protocol=number)
    assert (answer.status, answer.code) == (400, "wrong_protocol")
    assert f"is of protocol {number}, and this server follows protocol {PROTOCOL}" in answer.message
    assert "use the plug-in and the client of the server's own version" in answer.message


def test_a_take_over_that_names_no_protocol_is_refused_before_anything_is_written(
    served: Served, name: str
) -> None:
    connection = served.connection()
    sent = {"Authorization": f"Bearer {served.token}"}
    connection.request("POST", f"/v1/queries/{name}/instances", '{"run": "r"}', sent)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 400
    assert f"protocol 1, or names none, and this server follows protocol {PROTOCOL}" in body
    assert served.ask("GET", f"/queries/{name}").code == "unknown_query"


def test_who_only_reads_and_appends_may_name_no_protocol(served: Served, name: str) -> None:
    served.make(name)
    connection = served.connection()
    sent = {"Authorization": f"Bearer {served.token}"}
    connection.request("GET", f"/v1/streams/{name}", headers=sent)
    assert connection.getresponse().status == 200
    connection.close()


def test_the_client_names_the_protocol(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(served.url, served.token) as client:
        assert client.server().protocol == PROTOCOL
    monkeypatch.setattr("penstock.client.wire.PROTOCOL", int(EARLIER))
    both = f"of protocol {EARLIER}, and this server follows protocol {PROTOCOL}"
    with Client(served.url, served.token) as client, pytest.raises(Exception, match=both):
        client.server()


def test_the_client_uses_no_answer_of_a_server_of_another_protocol(served: Served) -> None:
    both = f"of protocol {EARLIER}, and this client follows protocol {PROTOCOL}"
    with (
        EarlierServer(served.url) as earlier,
        Client(earlier.url, served.token) as client,
        pytest.raises(BadCall, match=both) as error,
    ):
        client.server()
    assert error.value.code == "wrong_protocol"
