"""Changes that the client sends again because their answer was lost: each takes place once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from penstock.client import Client
from penstock.errors import BadCall
from support.servers.http_server import Served, table

Between = Callable[[], object]


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, served.token) as opened:
        yield opened


@pytest.fixture
def other(served: Served) -> Iterator[Client]:
    with Client(served.url, served.token) as opened:
        yield opened


@pytest.fixture
def lose_answer(client: Client, monkeypatch: pytest.MonkeyPatch) -> Callable[[Between], None]:
    """Lose the next answer to a change; `between` happens before the client sends it again."""

    def lose(between: Between) -> None:
        once = client._wire._once
        lost: list[str] = []

        def lossy(method: str, *rest: Any) -> Any:
            answer = once(method, *rest)
            if method != "GET" and not lost:
                lost.append(method)
                between()
                raise urllib3.exceptions.ProtocolError("the connection broke")
            return answer

        monkeypatch.setattr(client._wire, "_once", lossy)

    return lose


def test_a_reset_that_is_sent_again_does_not_fence_the_run_that_came_after_it(
    client: Client, other: Client, lose_answer: Callable[[Between], None], name: str
) -> None:
    client.take_over(name, "first")
    lose_answer(lambda: other.take_over(name, "next"))
    assert client.reset_query(name) == 2
    described = client.query(name)
    assert (described.run, described.instance) == ("next", 3)


def test_a_delete_that_is_sent_again_leaves_the_stream_that_was_made_after_it(
    client: Client, other: Client, served: Served, lose_answer: Callable[[Between], None], name: str
) -> None:
    served.make(name)
    client.register("group", name)

    def make_again() -> None:
        served.make(name)
        served.append(table(1, 2), name)

    lose_answer(make_again)
    client.delete_stream(name, force=True)
    assert served.values(name) == [1, 2]
    with pytest.raises(BadCall, match="there is no stream") as caught:
        client.delete_stream(f"{name}-never")
    assert caught.value.code == "unknown_stream"


def test_a_delete_whose_answer_was_lost_succeeds(
    client: Client, served: Served, lose_answer: Callable[[Between], None], name: str
) -> None:
    served.make(name)
    lose_answer(lambda: None)
    client.delete_stream(name)
    assert served.ask("GET", f"/streams/{name}").code == "unknown_stream"


def test_a_query_that_was_taken_over_after_its_delete_is_not_deleted_again(
    client: Client, other: Client, lose_answer: Callable[[Between], None], name: str
) -> None:
    client.take_over(name, "first")
    lose_answer(lambda: other.take_over(name, "next"))
    client.delete_query(name)
    assert client.query(name).run == "next"


def test_a_delete_of_a_query_names_the_instance_it_was_meant_for(
    client: Client, served: Served, name: str
) -> None:
    client.take_over(name, "first")
    client.take_over(name, "second")
    refused = served.ask("DELETE", f"/queries/{name}?instance=1")
    assert refused.code == "conflict"
    assert "its instance is 2" in refused.message
    assert client.query(name).run == "second"


def test_columns_whose_answer_was_lost_are_added_once(
    client: Client, served: Served, lose_answer: Callable[[Between], None], name: str
) -> None:
    served.make(name)
    lose_answer(lambda: None)
    altered = client.alter(name, add="note string", age_ms_max=5_000)
    assert altered.schema.names == ["k", "v", "note"]
    assert (altered.version, altered.age_ms_max) == (1, 5_000)


def test_an_alteration_that_is_sent_again_does_not_undo_the_one_that_came_after_it(
    client: Client, other: Client, served: Served, lose_answer: Callable[[Between], None], name: str
) -> None:
    served.make(name)
    lose_answer(lambda: other.alter(name, age_ms_max=10_000))
    with pytest.raises(BadCall, match="was altered since") as caught:
        client.alter(name, age_ms_max=5_000)
    assert caught.value.code == "conflict"
    assert client.describe(name).age_ms_max == 10_000


def test_a_stream_made_anew_is_not_altered_by_what_was_meant_for_the_one_before(
    client: Client, served: Served, lose_answer: Callable[[Between], None], name: str
) -> None:
    served.make(name)

    def make_again() -> None:
        served.ask("DELETE", f"/streams/{name}?force=1")
        served.make(name)

    lose_answer(make_again)
    with pytest.raises(BadCall, match="is another one"):
        client.alter(name, substreams=3)
    assert client.describe(name).substreams == 1
