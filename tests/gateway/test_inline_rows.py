"""Rows of a small batch come with the answer of admission, and are those that a fetch brings."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from support.servers.http_server import Served, table

SUBSTREAMS = 3


def admitted(served: Served, name: str, after: int = 0, **more: Any) -> dict[str, Any]:
    answer = served.ask("POST", "/admission", {"stream": name, "after": after, **more})
    assert answer.status == 200, answer.body
    return dict(answer.json())


def rows_of(page: dict[str, Any]) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(page["rows"])) as reader:
        return reader.read_all()


def fetched(served: Served, name: str, substream: int, after: int, until: int) -> pa.Table:
    range_ = f"substream={substream}&after={after}&until={until}"
    return served.ask("GET", f"/streams/{name}/rows?{range_}").table()


def test_pages_have_what_a_fetch_brings_of_every_substream(served: Served, name: str) -> None:
    served.make(name, substreams=SUBSTREAMS, key=["k"])
    first = served.append(table(*range(10)), name).json()["position"]
    served.append(table(*range(10, 30)), name)
    answer = admitted(served, name, first, inline_bytes=65_536)
    assert answer["end"] == answer["latest"] > first
    pages = {page["substream"]: rows_of(page) for page in answer["pages"]}
    for substream in range(SUBSTREAMS):
        expected = fetched(served, name, substream, first, answer["end"])
        assert pages[substream].equals(expected)
    assert sum(page.num_rows for page in pages.values()) == 20


def test_a_substream_without_rows_has_no_page(served: Served, name: str) -> None:
    served.make(name, substreams=SUBSTREAMS)
    served.append(table(1, 2), name, "?substream=1")
    pages = admitted(served, name, inline_bytes=65_536)["pages"]
    assert [page["substream"] for page in pages] == [1]


def test_rows_are_fetched_where_nobody_asks_or_they_are_many(served: Served, name: str) -> None:
    served.make(name)
    end = served.append(table(*range(100)), name).json()["position"]
    assert "pages" not in admitted(served, name)
    assert "pages" not in admitted(served, name, inline_bytes=100)
    assert "pages" in admitted(served, name, inline_bytes=65_536)
    assert "pages" not in admitted(served, name, end, inline_bytes=65_536)


def test_pages_have_the_columns_that_the_reader_knows(served: Served, name: str) -> None:
    served.make(name)
    served.append(table(1), name)
    served.ask("PATCH", f"/streams/{name}", {"add": "note string"})
    (narrow,) = admitted(served, name, inline_bytes=65_536, columns=2)["pages"]
    assert rows_of(narrow).column_names == ["k", "v"]
    (wide,) = admitted(served, name, inline_bytes=65_536)["pages"]
    assert rows_of(wide).to_pylist() == [{"k": 1, "v": "x", "note": None}]
    assert "pages" not in admitted(served, name, inline_bytes=65_536, columns=9)


def test_a_batch_with_terms_has_them_for_each_of_its_streams(served: Served, name: str) -> None:
    for stream in (name, f"{name}2"):
        served.make(stream)
    served.append(table(1, 2), name)
    body = {
        "query": name,
        "application": "app",
        "cores": 2,
        "inputs": [
            {"source": 0, "stream": name, "after": 0, "inline_bytes": 65_536},
            {"source": 1, "stream": f"{name}2", "after": 0, "inline_bytes": 65_536},
        ],
        "terms": {"policy": "asap"},
    }
    first, second = served.ask("POST", "/admission/batch", body).json()["inputs"]
    assert rows_of(first["pages"][0]).num_rows == 2
    assert "pages" not in second
