"""The JetStream stream of a log: made once, checked every time, and what it promises."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock.log.backends.jetstream.connection import ApiError, Connection
from penstock.model.ids import Lsn
from penstock.settings.server import Settings

EXPECT_SUBJECT = "Nats-Expected-Last-Subject-Sequence"
WRONG_LAST = {10071, 10164}
"""What JetStream answers if the last message of the subject is another, by its version."""
NO_STREAM = 10059
NO_MESSAGE = 10037
IN_USE = 10058
"""What JetStream answers if there is a stream of the name that was made otherwise."""
REPEATS_S = 120
KEPT_MS_MIN = 3_600_000
"""How long producers are remembered in a log that was made without saying so."""
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class StreamState:
    """A stream as it stands: `created` tells it from another one of the same name, and from itself
    before JetStream restored it; `id` from another one only."""

    created: str
    first: Lsn
    last: Lsn
    replicas: int
    agreed: Agreed

    @property
    def id(self) -> str:
        return self.agreed.id or self.created


class Agreed(msgspec.Struct, frozen=True):
    """Facts that decisions rest on beside messages, which must be the same on every server of
    the log. It is kept with the stream, as its description, from when that is made. A backup of
    the stream has the `id` too; one that was made without any has none."""

    producers_max: int
    id: str = ""
    producer_kept_ms_min: int = KEPT_MS_MIN


async def ensure_stream(connection: Connection, settings: Settings) -> StreamState:
    """The stream of the log, made if it is not there."""
    name = connection.address.name
    try:
        info = await connection.api(f"STREAM.INFO.{name}")
    except ApiError as error:
        if error.err_code != NO_STREAM:
            raise
        agreed = Agreed(settings.producers_max, secrets.token_hex(8), settings.producer_kept_ms_min)
        text = msgspec.json.encode(agreed).decode("utf-8")
        info = await create_stream(connection, name, settings.log_replicas, text)
    _check(info["config"], connection)
    return stream_state(info)


async def create_stream(
    connection: Connection, name: str, replicas: int, description: str = ""
) -> dict[str, Any]:
    """Make a stream, or find it made. It never discards by itself: a bound that an operator
    sets later refuses what is new."""
    config = {
        "name": name,
        "description": description,
        "subjects": [f"{name}.>"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": replicas,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        "max_age": 0,
        "duplicate_window": REPEATS_S * _SECOND_NS,
        "allow_direct": True,
    }
    try:
        return await connection.api(f"STREAM.CREATE.{name}", config)
    except ApiError as error:
        if error.err_code == IN_USE:  # another server was quicker
            return await connection.api(f"STREAM.INFO.{name}")
        if error.code == 503 or replicas == 1:
            raise
        raise BadCall(
            f"JetStream at {connection.address} does not make the stream {name!r} with {replicas} "
            f"replicas: {error}; start at least {replicas} servers as a cluster, or give "
            "--set log_replicas=1 to keep the log on one",
            code="bad_request",
        ) from None


def _check(config: dict[str, Any], connection: Connection) -> None:
    name = connection.address.name
    wrong = []
    if config.get("subjects") != [f"{name}.>"]:
        wrong.append(f"its subjects are {config.get('subjects')}, not {name}.>")
    if config.get("retention") != "limits":
        wrong.append(f"it keeps messages by {config.get('retention')}, not by limits")
    if config.get("storage") != "file":
        wrong.append("it keeps messages in memory, not in files")
    if config.get("max_age") or config.get("discard") != "new":
        wrong.append("it discards old messages by itself")
    if wrong:
        raise BadCall(
            f"the stream {name!r} at {connection.address} cannot hold a log: {'; '.join(wrong)}; "
            "give another name after the servers, or let Penstock make the stream",
            code="bad_request",
        )


def stream_state(info: dict[str, Any]) -> StreamState:
    """A stream as JetStream describes it."""
    state = info["state"]
    try:
        agreed = msgspec.json.decode(info["config"].get("description", ""), type=Agreed)
    except msgspec.DecodeError:
        agreed = Agreed(Settings().producers_max)
    return StreamState(
        str(info["created"]),
        Lsn(state["first_seq"]),
        Lsn(state["last_seq"]),
        int(info["config"]["num_replicas"]),
        agreed,
    )


def promise(connection: Connection, state: StreamState) -> str:
    """The meaning of an answer on this stream, in words."""
    most = state.replicas // 2 + 1
    held = (
        f"{most} of {state.replicas} servers hold it" if state.replicas > 1 else "one server does"
    )
    sync = (
        "its version syncs files every 2 minutes, which cannot be set"
        if connection.numbers < (2, 10)
        else "its sync_interval says when files are synced: 2 minutes unless set, or always"
    )
    return (
        f"the log is the stream {connection.address.name!r} of JetStream at {connection.address}, "
        f"nats-server {connection.version}; an answer means that {held}, in memory or on disk; "
        f"{sync}"
    )
