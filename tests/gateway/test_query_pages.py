"""Answers about a query come in pages that are bounded in bytes, not only by their number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.client.client import Client
from support.servers.http_server import Answer, Served

BATCHES, STORES = 6, 40
PAGE_BYTES = 8 << 10
"""A marker of so many stores is half of it, and the change logs of one store far less."""
SLACK_BYTES = 4 << 10


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A query of a few batches, each with a change log of every store."""
    options = ("--set", f"page_bytes={PAGE_BYTES}")
    with Served(tmp_path_factory.mktemp("pages") / "data", *options) as served:
        assert served.ask("POST", "/queries/q/instances", {"run": "r"}).status == 200
        for batch in range(BATCHES):
            paths = [f"state/0/{store:03}/{batch + 1}_abc.changelog" for store in range(STORES)]
            marked = mark(served, batch, dict(zip(paths, put(served, batch, paths), strict=True)))
            assert marked.status == 200, marked.body
        yield served


def put(served: Served, batch: int, paths: list[str]) -> list[int]:
    named, sizes = ",".join(quote(path, safe="") for path in paths), ",".join("1" for _ in paths)
    asked = f"instance=1&batch={batch}&paths={named}&sizes={sizes}"
    return list(
        served.ask("POST", f"/queries/q/files?{asked}", b"x" * len(paths)).json()["entries"]
    )


def mark(served: Served, batch: int, files: dict[str, int]) -> Answer:
    body = {
        "instance": 1,
        "batch": batch,
        "writes": [],
        "commit": "e30=",
        "snapshots": [],
        "files": [{"path": path, "entry": entry} for path, entry in files.items()],
    }
    return served.ask("POST", "/queries/q/markers", body)


def page(served: Served, route: str) -> dict[str, Any]:
    answer = served.ask("GET", f"/queries/q/{route}")
    assert answer.status == 200, answer.body
    assert len(answer.body) < PAGE_BYTES + SLACK_BYTES
    return dict(answer.json())


def test_markers_are_as_many_as_a_page_has_room_for(served: Served) -> None:
    assert 0 < len(page(served, "markers")["markers"]) < BATCHES
    with Client(served.url, served.token) as client:
        assert [each.batch for each in client.markers("q")] == list(range(BATCHES))


def test_a_checkpoint_is_read_to_its_end_a_page_at_a_time(served: Served) -> None:
    batches: list[int] = []
    pages, has_more = 0, True
    while has_more:
        answer = page(served, f"checkpoint?after_batch={batches[-1]}" if batches else "checkpoint")
        batches += [each["batch"] for each in answer["markers"]]
        assert all(len(each["files"]) == STORES for each in answer["markers"])
        pages, has_more = pages + 1, answer["more"]
    assert batches == list(range(BATCHES))
    assert pages > 1


def test_state_is_read_to_its_end_a_page_at_a_time(served: Served) -> None:
    folders: list[str] = []
    pages, has_more = 0, True
    while has_more:
        after = f"?after={quote(folders[-1], safe='')}" if folders else ""
        answer = page(served, f"state{after}")
        folders += [each["folder"] for each in answer["stores"]]
        for each in answer["stores"]:
            assert [change["batch"] for change in each["changes"]] == list(range(BATCHES))
        pages, has_more = pages + 1, answer["more"]
    assert folders == [f"state/0/{store:03}" for store in range(STORES)]
    assert pages > 1


def test_a_page_has_one_at_least_however_large_it_is(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--set", "page_bytes=1024") as tight:
        tight.ask("POST", "/queries/q/instances", {"run": "r"})
        for batch in range(2):
            paths = [f"state/0/0/{batch + 1}_{n:03}.changelog" for n in range(STORES)]
            mark(tight, batch, dict(zip(paths, put(tight, batch, paths), strict=True)))
        assert len(tight.ask("GET", "/queries/q/markers").json()["markers"]) == 1
        checkpoint = tight.ask("GET", "/queries/q/checkpoint").json()
        assert (len(checkpoint["markers"]), checkpoint["more"]) == (1, True)
        state = tight.ask("GET", "/queries/q/state").json()
        assert (len(state["stores"]), state["more"]) == (1, False)
        assert len(state["stores"][0]["changes"]) == 2 * STORES
