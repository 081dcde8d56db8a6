"""Generic records over HTTP, where some of them are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client import Client
from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendRecord, TrimTag
from support.servers.http_server import Served


def test_who_asks_for_records_that_are_gone_is_told_and_who_names_no_place_gets_those_there_are(
    tmp_path: Path,
) -> None:
    log = EmbeddedLog.open(tmp_path / "data")
    lsns = [log.run(AppendRecord(("a",), b"%d" % number)) for number in range(4)]
    log.run(TrimTag("a", lsns[1]))
    log.close()
    with Served(tmp_path / "data") as served:
        refused = served.ask("GET", "/records?tag=a&after=0")
        assert (refused.status, refused.code) == (410, "trimmed")
        assert f"start from {lsns[1]}" in refused.message
        with Client(served.url, served.token) as client:
            assert [each.payload for each in client.records("a")] == [b"2", b"3"]
            assert [each.lsn for each in client.records("a", lsns[1])] == lsns[2:]
            with pytest.raises(BadCall, match="are gone"):
                client.records("a", lsns[0])


@pytest.mark.parametrize("tag", ["", "s/s/0", "t/q", "f/q"])
def test_a_tag_that_no_record_has_is_refused(served: Served, tag: str) -> None:
    refused = served.ask("GET", f"/records?tag={tag}")
    assert (refused.status, refused.code) == (400, "bad_tag")


def test_a_page_of_records_is_bounded_in_bytes_too(served: Served, name: str) -> None:
    """256 records of 16 MiB would be 4 GiB in one answer."""
    lsns = [
        served.ask("POST", f"/records?tags={name}", bytes([number]) * (3 << 20)).json()["lsn"]
        for number in range(5)
    ]
    pages, after, has_more = [], 0, True
    while has_more:
        page = served.ask("GET", f"/records?tag={name}&after={after}").json()
        pages.append([record["lsn"] for record in page["records"]])
        after, has_more = pages[-1][-1], page["more"]
    assert pages == [lsns[:2], lsns[2:4], lsns[4:]]
