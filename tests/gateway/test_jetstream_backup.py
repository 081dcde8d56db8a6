"""A log in JetStream is backed up: as a log in a folder, and by the servers of JetStream."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nats as nats_py
import pytest

from penstock.client import Client
from penstock.errors import Damaged
from penstock.log import invariants
from penstock.log.address import log_address
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream.codec import OperationId, messages
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.operations import AppendRows, TrimStream
from penstock.log.store.backup import restore, write_backup
from penstock.model.ids import StreamName
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers
from support.log.backends import content, wait_for
from support.log.drafts import draft, make, rows
from support.servers.http_server import Served, table

REQUEST_S = 10.0


def url_of(nats: NatsServers, name: str) -> tuple[str, str]:
    return ("--log", f"{nats.url}/{name}")


def fill(served: Served) -> int:
    """Rows of a producer with sequences, a query and a consumer; the last position."""
    served.make(substreams=2)
    served.append(table(1, 2), Penstock_Producer="p", Penstock_Sequence="1")
    assert served.ask("POST", "/queries/q/instances", {"run": "r"}).json()["instance"] == 1
    kept = served.ask("PUT", "/consumers/g/streams/s", {"start": "earliest"})
    assert kept.status == 200, kept.body
    return int(served.append(table(3)).json()["position"])


def test_a_backup_of_a_log_in_jetstream_becomes_a_log_in_a_folder(
    nats: NatsServers, tmp_path: Path
) -> None:
    with Served(tmp_path / "index", *url_of(nats, "backed-up")) as served:
        last = fill(served)
        asyncio.run(publish_half(nats, "backed-up"))
        again = served.append(table(4)).json()["position"]
        size = write_backup(tmp_path / "backup", Client(served.url, served.token).backup())
        assert size > 0
        lost = served.append(table(5)).json()["position"]
        assert last < again < lost
    restored = restore(tmp_path / "backup", tmp_path / "again", Settings())
    assert (restored.last, restored.streams, restored.queries) == (again, 1, 1)
    log = EmbeddedLog.open(tmp_path / "again")
    try:
        invariants.check(log)
    finally:
        log.close()
    with Served(tmp_path / "again") as served:
        assert served.values() == [1, 2, 3, 4]
        repeat = served.append(table(1, 2), Penstock_Producer="p", Penstock_Sequence="1")
        assert repeat.json()["duplicate"], "producers are remembered"
        (kept,) = served.ask("GET", "/consumers").json()["consumers"]
        assert (kept["name"], kept["rows_behind"]) == ("g", 4)
        refused = served.ask("GET", f"/streams/s/rows?after={lost}")
        assert refused.code == "position_past_end"
        fenced = served.ask("POST", "/queries/q/instances", {"run": "r"})
        assert fenced.code == "fenced"
        served.append(table(6))
        assert served.values() == [1, 2, 3, 4, 6]


def test_streams_that_jetstream_has_restored_are_a_log_again(
    nats: NatsServers, tmp_path: Path
) -> None:
    with Served(tmp_path / "index", *url_of(nats, "kept")) as served:
        fill(served)
        last = served.append(table(4)).json()["position"]
        snapshot = asyncio.run(take_snapshot(nats, "kept"))
        served.append(table(5))
    asyncio.run(put_back(nats, "kept", snapshot))
    with Served(tmp_path / "fresh", *url_of(nats, "kept")) as served:
        assert served.values() == [1, 2, 3, 4]
        repeat = served.append(table(1, 2), Penstock_Producer="p", Penstock_Sequence="1")
        assert repeat.json()["duplicate"]
        # Places go on from the end of the backup: what was lost is not told from what comes now.
        assert served.append(table(6)).json()["position"] > last
        assert served.values() == [1, 2, 3, 4, 6]
    with Served(tmp_path / "index", *url_of(nats, "kept")) as served:
        assert served.values() == [1, 2, 3, 4, 6], "an index of the time before is made anew"


def test_a_restored_log_whose_messages_were_purged_goes_on_from_its_state(
    nats: NatsServers, tmp_path: Path
) -> None:
    address = log_address(f"{nats.url}/purged")
    log = JetStreamLog.open(tmp_path / "a", address)
    log.run(make())
    before = asyncio.run(take_snapshot(nats, "purged"))
    positions = [log.run(rows(draft(0, n))).position for n in range(10)]
    log.run(TrimStream(StreamName("s"), positions[5], 0))
    assert log.purge(0) > 5
    last = log.run(rows(draft(1, 10))).position
    held = content(log)
    log.close()
    both = {name: asyncio.run(take_snapshot(nats, name)) for name in ("purged", "purged-base")}
    for name, snapshot in both.items():
        asyncio.run(put_back(nats, name, snapshot))
    restored = JetStreamLog.open(tmp_path / "b", address)
    try:
        wait_for(restored, last)
        assert content(restored) == held
        invariants.check(restored)
    finally:
        restored.close()
    # A stream and a state of different times would not fit.
    asyncio.run(put_back(nats, "purged", before))
    with pytest.raises(Damaged, match="they are not of one time; restore both"):
        JetStreamLog.open(tmp_path / "c", address)


Snapshot = tuple[dict[str, Any], list[bytes]]


async def take_snapshot(nats: NatsServers, name: str) -> Snapshot:
    """What `nats stream backup` keeps: the stream's configuration, and its messages in chunks."""
    client = await nats_py.connect(nats.url.split(","))
    inbox = client.new_inbox()
    chunks: list[bytes] = []
    coming = await client.subscribe(inbox)
    asked = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": 64 << 10}
    reply = await ask(client, f"$JS.API.STREAM.SNAPSHOT.{name}", json.dumps(asked).encode())
    while (chunk := await coming.next_msg(timeout=REQUEST_S)).data:
        chunks.append(chunk.data)
        if chunk.reply:
            await client.publish(chunk.reply, b"")
    await client.close()
    return {"config": reply["config"], "state": reply["state"]}, chunks


async def put_back(nats: NatsServers, name: str, snapshot: Snapshot) -> None:
    """What `nats stream restore` does, in place of the stream that is there."""
    client = await nats_py.connect(nats.url.split(","))
    await ask(client, f"$JS.API.STREAM.DELETE.{name}", b"")
    about, chunks = snapshot
    reply = await ask(client, f"$JS.API.STREAM.RESTORE.{name}", json.dumps(about).encode())
    for chunk in chunks:
        await client.request(reply["deliver_subject"], chunk, timeout=REQUEST_S)
    await ask(client, reply["deliver_subject"], b"")
    await client.close()


async def ask(client: Any, subject: str, body: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        (await client.request(subject, body, timeout=REQUEST_S)).data
    )
    assert "error" not in answer, answer
    return answer


async def publish_half(nats: NatsServers, name: str) -> None:
    """The first of two messages of an append whose server dies before the second."""
    operation = AppendRows(StreamName("s"), (draft(0), draft(1)))
    first, _ = messages(OperationId(b"dead one", 1), operation)
    client = await nats_py.connect(nats.url.split(","))
    await client.publish(f"{name}.{first.subject}", first.body)
    await client.close()
