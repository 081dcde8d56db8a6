"""Aligned queries over HTTP: what members may read, what others see, and who is waited for."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.query import query as query_command
from support.servers.http_server import ARROW, Answer, Served, ipc, table


class Chain:
    """`outer` to query `a` to `mid` to query `b` to `out`, under names of the test's own."""

    def __init__(self, served: Served, name: str) -> None:
        self.served, self.name = served, name
        for stream in ("outer", "mid", "out"):
            served.make(self.of(stream))
        self.joined("a", "mid")
        self.joined("b", "out")
        for query, stream in (("a", "outer"), ("b", "mid")):
            self.admit(query, stream)

    def of(self, what: str) -> str:
        return f"{self.name}_{what}"

    def joined(self, query: str, *outputs: str) -> None:
        path = f"/queries/{self.of(query)}"
        self.served.ask("POST", f"{path}/instances", {"run": "r1", "name": query})
        body = {"instance": 1, "outputs": [self.of(each) for each in outputs]}
        assert self.served.ask("PUT", f"{path}/alignment", body).status == 200

    def admit(self, query: str, stream: str, after: int = 0, **more: Any) -> int:
        body = {"query": self.of(query), "instance": 1, "stream": self.of(stream), "after": after}
        answer = self.served.ask("POST", "/admission", {**body, **more})
        assert answer.status == 200, answer.body
        return int(answer.json()["end"])

    def append(self) -> int:
        return int(self.served.append(table(1), self.of("outer")).json()["position"])

    def mark(self, query: str, stream: str, output: str, position: int, batch: int = 0) -> int:
        stamped = f"query={self.of(query)}&instance=1&batch={batch}&partition=0&attempt=0"
        path = f"/streams/{self.of(output)}/entries?{stamped}&substreams=0"
        rows = ipc(table(batch).to_batches())
        entries = self.served.ask("POST", path, rows, Content_Type=ARROW).json()["entries"]
        body = {
            "instance": 1,
            "batch": batch,
            "writes": [
                {"stream": self.of(output), "partition": 0, "attempt": 0, "entries": entries}
            ],
            "commit": "e30=",
            "positions": {self.of(stream): position},
        }
        answer = self.served.ask("POST", f"/queries/{self.of(query)}/markers", body)
        return int(answer.json()["lsn"])

    def rows(self, stream: str, more: str = "") -> Answer:
        return self.served.ask("GET", f"/streams/{self.of(stream)}/rows?after=0{more}")

    def seen(self, stream: str) -> tuple[int, int, int]:
        """Rows that anyone reads, rows that the stream says it has, and its latest position."""
        told = self.served.ask("GET", f"/streams/{self.of(stream)}").json()
        at = self.served.ask("GET", f"/streams/{self.of(stream)}/position?at=latest").json()
        assert at["position"] == told["latest"]
        return len(self.rows(stream).table()), told["rows"], told["latest"]

    def query(self, query: str) -> dict[str, Any]:
        return dict(self.served.ask("GET", f"/queries/{self.of(query)}").json())


@pytest.fixture
def chain(served: Served, name: str) -> Chain:
    return Chain(served, name)


def test_others_see_what_a_chain_wrote_when_the_barrier_is_complete(chain: Chain) -> None:
    until = chain.append()
    assert chain.admit("a", "outer") == until
    mid = chain.mark("a", "outer", "mid", until)
    assert chain.seen("mid") == (0, 0, 0)
    assert chain.admit("b", "mid") == mid
    out = chain.mark("b", "mid", "out", mid)
    assert chain.seen("mid") == (1, 1, mid)
    assert chain.seen("out") == (1, 1, out)


def test_only_a_member_reads_past_what_is_shown(chain: Chain, served: Served) -> None:
    mid = chain.mark("a", "outer", "mid", chain.append())
    refused = chain.rows("mid", f"&until={mid}")
    assert (refused.status, refused.code) == (400, "position_past_end")
    assert chain.rows("mid", f"&until={mid}&query=nobody").code == "position_past_end"
    own = f"&query={chain.of('b')}"
    assert len(chain.rows("mid", f"&until={mid}{own}").table()) == 1
    path = f"/streams/{chain.of('mid')}"
    assert served.ask("GET", f"{path}/position?at=latest{own}").json()["position"] == mid
    assert served.ask("GET", f"{path}?query={chain.of('b')}").json()["latest"] == mid
    other = {"stream": chain.of("mid"), "after": 0}
    assert served.ask("POST", "/admission", other).json()["end"] == 0
    group = served.ask("PUT", f"/consumers/{chain.name}/streams/{chain.of('mid')}", {})
    assert group.json() == {"position": 0}


def test_a_held_reader_is_told_when_the_barrier_is_complete(chain: Chain, served: Served) -> None:
    until = chain.append()
    chain.admit("a", "outer")
    mid = chain.mark("a", "outer", "mid", until)
    threading.Timer(0.3, lambda: chain.mark("b", "mid", "out", mid)).start()
    began = time.monotonic()
    assert len(chain.rows("mid", "&wait_ms=5000").table()) == 1
    assert 0.2 < time.monotonic() - began < 0.9


def test_a_member_that_asks_is_held_to_the_barrier_and_told_of_the_next(chain: Chain) -> None:
    first = chain.append()
    assert chain.admit("a", "outer") == first
    second = chain.append()
    assert chain.admit("a", "outer") == first
    mid = chain.mark("a", "outer", "mid", first)
    assert chain.admit("a", "outer", first) == second
    later = chain.mark("a", "outer", "mid", second, batch=1)
    assert chain.admit("b", "mid") == mid
    threading.Timer(0.3, lambda: chain.mark("b", "mid", "out", mid)).start()
    assert chain.admit("b", "mid", mid, wait_ms=5000) == later


def test_a_query_says_whom_its_barrier_waits_for(chain: Chain, served: Served) -> None:
    assert chain.query("a")["aligned"]["barrier"] is None
    until = chain.append()
    chain.admit("a", "outer")
    mid = chain.mark("a", "outer", "mid", until)
    told = chain.query("a")["aligned"]
    outer, middle = chain.of("outer"), chain.of("mid")
    assert told["barrier"] == {
        "places": {outer: until, middle: mid},
        "has_passed": True,
        "waits_for": [chain.of("b")],
    }
    assert (told["outputs"], told["positions"]) == ([middle], {outer: until})
    assert told["chain"] == [chain.of("a"), chain.of("b")]
    assert told["shown"] == {middle: 0, chain.of("out"): 0}
    listed = CliRunner().invoke(
        query_command, ["list", "--url", served.url, "--token", served.token]
    )
    (line,) = [each for each in listed.output.splitlines() if each.startswith(chain.of("a"))]
    assert line.endswith(f"the barrier waits for {chain.of('b')}")


def test_a_take_over_says_that_the_query_is_aligned_and_it_can_end_that(
    chain: Chain, served: Served
) -> None:
    path = f"/queries/{chain.of('a')}"
    taken = served.ask("POST", f"{path}/instances", {"run": "r2", "name": None}).json()
    assert taken == {"instance": 2, "marker": None, "aligned": True}
    body = {"instance": 1, "outputs": []}
    assert served.ask("PUT", f"{path}/alignment", body).code == "fenced"
    assert served.ask("PUT", f"{path}/alignment", {**body, "instance": 2}).status == 200
    assert "aligned" not in chain.query("a")
    bad = {"instance": 2, "outputs": ["no stream"]}
    assert served.ask("PUT", f"{path}/alignment", bad).code == "bad_name"
