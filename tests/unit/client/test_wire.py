"""What is tried again, for how long, and what the caller is told in the end."""

from __future__ import annotations

import pytest

from penstock.client.wire import PAUSE_MAX_S, Wire
from penstock.clock import Clock
from penstock.errors import BadCall, Bug, Damaged, Fenced, PenstockError, TryAgain
from penstock.model.answers import Health
from support.servers.scripted_server import HANG_UP, Say, ScriptedServer, refuse, say


def wire_to(server: ScriptedServer, clock: Clock, deadline_s: float = 10.0) -> Wire:
    return Wire(server.url, "secret", None, deadline_s, clock)


def test_a_broken_connection_is_tried_again(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(HANG_UP, HANG_UP, say({"version": "1", "protocol": 5}))
    health = wire_to(scripted, clock).request("GET", ("health",)).as_kind(Health)
    assert health == Health("1", 5)
    assert len(scripted.asked) == 3


def test_an_answer_that_says_retry_is_tried_again(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(refuse("stopping", "retry", 503), say({}))
    wire_to(scripted, clock).request("GET", ("server",))
    assert len(scripted.asked) == 2


def test_a_proxy_without_its_server_is_tried_again(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(Say(502, b"<html>bad gateway</html>"), say({}))
    wire_to(scripted, clock).request("GET", ("server",))
    assert len(scripted.asked) == 2


@pytest.mark.parametrize(
    ("act", "status", "kind"),
    [
        ("change the call", 409, BadCall),
        ("change the call", 410, BadCall),
        ("stop", 409, Fenced),
        ("restore the data", 500, Damaged),
        ("report this", 500, Bug),
    ],
)
def test_an_error_that_a_retry_cannot_mend_is_raised_at_once(
    scripted: ScriptedServer, clock: Clock, act: str, status: int, kind: type[PenstockError]
) -> None:
    scripted.script(refuse("some_code", act, status, "the facts"))
    with pytest.raises(kind) as caught:
        wire_to(scripted, clock).request("GET", ("server",))
    assert (caught.value.code, caught.value.message) == ("some_code", "the facts")
    assert caught.value.http_status == status
    assert len(scripted.asked) == 1


def test_pauses_grow_up_to_a_bound_and_end_before_the_deadline(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(refuse("stopping", "retry", 503, "stopping now"))
    with pytest.raises(TryAgain, match="stopping now"):
        wire_to(scripted, clock, deadline_s=10.0).request("GET", ("server",))
    slept: list[float] = getattr(clock, "slept", [])
    assert slept[:3] == [0.05, 0.1, 0.2]
    assert max(slept) == PAUSE_MAX_S
    assert sum(slept) < 10.0


def test_a_server_that_is_not_there_is_named_after_the_deadline(clock: Clock) -> None:
    wire = Wire("http://127.0.0.1:9", "secret", None, 1.0, clock)
    with pytest.raises(TryAgain, match=r"127\.0\.0\.1:9 did not answer within 1 s .*running") as e:
        wire.request("GET", ("health",))
    assert e.value.code == "unreachable"
    assert "secret" not in str(e.value)


def test_an_answer_of_some_other_server_is_not_mistaken_for_ours(
    scripted: ScriptedServer, clock: Clock
) -> None:
    scripted.script(Say(404, b"<html>nginx</html>"))
    with pytest.raises(Bug, match="another server"):
        wire_to(scripted, clock).request("GET", ("server",))


def test_the_token_and_the_escaped_path_are_sent(scripted: ScriptedServer, clock: Clock) -> None:
    scripted.script(say({}))
    wire_to(scripted, clock).request("GET", ("streams", "a/b c"), {"after": 0, "until": None})
    assert scripted.asked[0].path == "/v1/streams/a%2Fb%20c?after=0"
    assert scripted.asked[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("url", ["127.0.0.1:8720", "ftp://127.0.0.1", "", "http://"])
def test_what_is_not_a_url_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(BadCall, match="not a server's URL"):
        Wire(url, "", None, 1.0)
