"""Named consumers against a real server: at least once, resumed, told when something is wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, islice

import pytest

import penstock
from penstock.client import Client, consume, default
from penstock.errors import BadCall
from support.servers.processes import ServerProcess

_numbers = count()


@pytest.fixture(name="server", scope="module", params=["embedded", "jetstream"])
def _server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    options: tuple[str, ...] = ()
    if request.param == "jetstream":
        options = ("--log", f"{request.getfixturevalue('nats').url}/consumed")
    server = ServerProcess(tmp_path_factory.mktemp("consumed"), *options).start()
    yield server
    server.stop()


@pytest.fixture(name="made")
def _made(server: ServerProcess) -> Iterator[Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def stream(made: Client) -> str:
    return made.create(f"consumed_{next(_numbers)}", "n bigint").name


def fill(client: Client, stream: str, *values: int) -> None:
    for value in values:
        client.append(stream, [{"n": value}])


def numbers(batches: list[penstock.Consumed]) -> list[int]:
    return [value for batch in batches for value in batch.rows["n"].to_pylist()]


def test_a_consumer_goes_on_where_the_one_before_it_committed(made: Client, stream: str) -> None:
    fill(made, stream, 1, 2)
    consumer = made.consume(stream, group="g")
    first = next(consumer)
    assert (first.stream, numbers([first])) == (stream, [1, 2])
    assert consumer.positions == {stream: 0}, "not committed before the next is asked for"
    again = next(made.consume(stream, group="g"))
    assert numbers([again]) == [1, 2], "the first one stopped before it was done"
    fill(made, stream, 3)
    assert numbers([next(consumer)]) == [3]
    assert consumer.positions == {stream: first.position}
    assert numbers([next(made.consume(stream, group="g"))]) == [3]
    assert numbers([next(made.consume(stream, group="other"))]) == [1, 2, 3]


def test_a_position_is_committed_by_hand_if_that_is_asked_for(made: Client, stream: str) -> None:
    fill(made, stream, 1)
    consumer = made.consume(stream, group="g", auto_commit=False)
    batch = next(consumer)
    fill(made, stream, 2)
    next(consumer)
    assert consumer.positions == {stream: 0}
    consumer.commit()
    assert consumer.positions[stream] > batch.position
    (consumer_state,) = [each for each in made.consumers() if each.stream == stream]
    assert (consumer_state.name, consumer_state.rows_behind) == ("g", 0)


def test_several_streams_take_turns_and_wake_the_consumer(made: Client, stream: str) -> None:
    other = made.create(f"{stream}_too", "n bigint").name
    fill(made, stream, 1)
    fill(made, other, 2)
    stop = threading.Event()
    consumer = made.consume(stream, other, group="g", stop=stop)
    both = list(islice(consumer, 2))
    assert [batch.stream for batch in both] == [stream, other]
    threading.Timer(0.3, fill, (made, other, 3)).start()
    late = next(consumer)
    assert (late.stream, numbers([late])) == (other, [3])
    stop.set()
    assert list(consumer) == []
    assert consumer.positions[other] == late.position, "the end of the loop commits, too"


def test_a_large_backlog_comes_in_whole_commits_each_with_its_position(
    made: Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "BATCH_BYTES", 1)
    fill(made, stream, 1, 2, 3)
    batches = list(islice(made.consume(stream, group="g"), 3))
    assert [numbers([batch]) for batch in batches] == [[1], [2], [3]]
    assert len({batch.position for batch in batches}) == 3


def test_two_consumers_under_one_name_are_told_at_their_next_commit(
    made: Client, stream: str
) -> None:
    fill(made, stream, 1)
    first_consumer, second_consumer = (
        made.consume(stream, group="g"),
        made.consume(stream, group="g"),
    )
    next(first_consumer)
    fill(made, stream, 2)
    next(second_consumer)
    fill(made, stream, 3)
    next(first_consumer)
    with pytest.raises(BadCall) as caught:
        next(second_consumer)
    assert caught.value.code == "conflict"
    assert "another consumer" in caught.value.message


def test_rows_that_were_trimmed_are_an_error_and_not_left_out(made: Client, stream: str) -> None:
    fill(made, stream, 1, 2)
    follower = made.follow(stream, 0)
    consumer = made.consume(stream, group="g")
    made.forget("g")
    made.trim(stream, made.position(stream))
    with pytest.raises(BadCall) as caught:
        next(consumer)
    assert (caught.value.code, caught.value.http_status) == ("trimmed", 410)
    with pytest.raises(BadCall, match="are gone"):
        next(follower)
    with pytest.raises(BadCall, match="are gone"):
        made.read(stream, 0)
    assert made.read(stream).num_rows == 0, "without a position it starts from the earliest"


def test_a_reader_from_before_a_column_was_added_sees_what_it_knows(
    made: Client, stream: str, server: ServerProcess
) -> None:
    fill(made, stream, 1)
    with server.client() as other:
        other.alter(stream, add="note string")
        other.append(stream, [{"n": 2, "note": "new"}])
        assert made.read(stream).column_names == ["n"]
        fill(made, stream, 3)
        made.append(stream, [{"n": 4, "note": "asks again what there is"}])
        assert other.read(stream)["note"].to_pylist() == [
            None, "new", None, "asks again what there is",
        ]  # fmt: skip
        assert other.describe(stream).version == 1


def test_a_quiet_consumer_says_that_it_is_there(
    made: Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "HEARD_S", 0.0)
    monkeypatch.setattr(consume, "WAIT_MS", 1)
    consumer = made.consume(stream, group="quiet")
    before = next(each for each in made.consumers() if each.name == "quiet")
    consumer._wait()
    after = next(each for each in made.consumers() if each.name == "quiet")
    assert after.position == before.position
    assert after.heard_at_ms >= before.heard_at_ms


def test_the_module_consumes_from_the_current_server(made: Client, stream: str) -> None:
    fill(made, stream, 5)
    default.use(made)
    assert numbers([next(penstock.consume(stream, group="g"))]) == [5]
    with pytest.raises(BadCall, match="name the streams"):
        penstock.consume(group="g")
