"""Starting, refusing to start, and stopping."""

from __future__ import annotations

import json
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

from support.servers.certificates import Certificate, make_certificate
from support.servers.http_server import START_S, Served, refusal, table
from support.servers.processes import wait_until


def bearer(served: Served) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.token}"}


def wait_until_taken_in(served: Served) -> None:
    """Until the server has begun with what was sent to it before on other connections.

    It takes connections in their order, and looks at all that have sent something in each turn of
    its loop. An answer takes more than one turn.
    """
    for _ in range(3):
        assert served.ask("GET", "/streams").status == 200


def is_deaf(served: Served) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", int(served.url.rpartition(":")[2]))) != 0


def test_the_folder_says_where_the_server_is_and_only_to_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        server_file = json.loads((data / "server.json").read_text())
        assert server_file == {"url": served.url, "token": served.token, "pid": served.process.pid}
        assert (data / "token").read_text().strip() == served.token
        for file in ("token", "server.json"):
            assert stat.S_IMODE((data / file).stat().st_mode) == 0o600
        served.process.terminate()
        said, complaints = served.process.communicate(timeout=START_S)
        assert served.process.returncode == 0
        assert said == f"penstock serves {data} at {served.url}, token in {data / 'token'}\n"
        assert complaints == ""
    assert not (data / "server.json").exists()
    with Served(data) as again:
        assert again.token == served.token


def test_a_given_token_is_the_one_that_counts(tmp_path: Path) -> None:
    with Served(tmp_path / "data", environment={"PENSTOCK_TOKEN": "mine"}) as served:
        assert served.token == "mine"
        assert served.ask("GET", "/streams", token="mine").status == 200
        assert served.ask("GET", "/streams", token="other").status == 401


def test_a_second_server_on_one_folder_is_refused(tmp_path: Path) -> None:
    with Served(tmp_path / "data") as served:
        said = refusal(tmp_path / "data")
        assert f"in use by the server with pid {served.process.pid}" in said
        assert f"listening at {served.url}" in said
        assert served.ask("GET", "/streams").status == 200


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(tmp_path / "data", "--port", str(port))
    assert f"cannot listen on 127.0.0.1 port {port}" in said
    assert "give another --port" in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])
def test_elsewhere_than_loopback_needs_a_certificate(tmp_path: Path, host: str) -> None:
    said = refusal(tmp_path / "data", "--host", host)
    assert f"{host} is not this machine's loopback address" in said
    assert "give --tls-cert and --tls-key" in said
    assert not (tmp_path / "data").exists()


def test_with_a_certificate_it_listens_anywhere_and_speaks_tls(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "0.0.0.0")
    options = ("--host", "0.0.0.0", *made.options)
    with Served(tmp_path / "data", *options, context=made.trusting()) as served:
        assert served.url.startswith("https://0.0.0.0:")
        assert served.make().status == 201
        assert served.append(table(1)).status == 200
        assert served.values() == [1]
    no_key = Certificate(made.cert, made.cert)
    no_cert = Certificate(made.key, made.key)
    for wrong in (no_key, no_cert):
        assert "cannot be used" in refusal(tmp_path / "data", *wrong.options)
    assert "go together" in refusal(tmp_path / "data", *made.options[:2])


def test_a_setting_out_of_bounds_is_refused_by_name(tmp_path: Path) -> None:
    assert "hold_ms_max is 99999999" in refusal(tmp_path, "--set", "hold_ms_max=99999999")
    assert "there is no setting 'wibble'" in refusal(tmp_path, "--set", "wibble=1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_held_requests_are_answered_at_once_when_the_server_stops(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Served(tmp_path / "data", "--set", "hold_ms_max=60000") as served:
        served.make()
        connection = served.connection()
        asked = json.dumps({"stream": "s", "after": 0, "wait_ms": 60_000})
        connection.request("POST", "/v1/admission", asked, bearer(served))
        wait_until_taken_in(served)
        began = time.monotonic()
        served.process.send_signal(number)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        served.process.communicate(timeout=START_S)
        assert time.monotonic() - began < 30, "half of what it would have been held for"
        assert answer == {"end": 0, "latest": 0, "substreams": 1}
        assert served.process.returncode == 0


def test_an_append_under_way_is_finished_when_the_server_stops(tmp_path: Path) -> None:
    """Half of the body is sent, then SIGTERM, then the rest."""
    body = b'{"k":1}\n' * 100_000
    with Served(tmp_path / "data") as served:
        served.make()
        connection = served.connection()
        connection.putrequest("POST", "/v1/streams/s/rows")
        connection.putheader("Authorization", bearer(served)["Authorization"])
        connection.putheader("Content-Type", "application/x-ndjson")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[: len(body) // 2])
        wait_until_taken_in(served)
        served.process.terminate()
        wait_until("it takes no new connection", lambda: is_deaf(served))
        connection.send(body[len(body) // 2 :])
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["rows"] == 100_000
        connection.close()
        served.process.communicate(timeout=START_S)
        assert served.process.returncode == 0
    with Served(tmp_path / "data") as again:
        assert len(again.values()) == 100_000


def test_a_newer_format_is_refused_with_both_numbers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data):
        pass
    (data / "format.json").write_text('{"format": 6}')
    said = refusal(data)
    assert "has format 6" in said
    assert "reads up to format 5; upgrade Penstock" in said
    (data / "format.json").write_text("{")
    assert "format.json cannot be read" in refusal(data)


def test_a_log_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data):
        pass
    (data / "log" / "data.mdb").unlink()
    assert "data.mdb is gone; restore the data folder" in refusal(data)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path / "file" / "data")
    assert "cannot be used: Not a directory; give one that can be written to" in said
