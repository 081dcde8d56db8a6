"""`penstock query deadline` and `penstock explain` against a server that a query has asked."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from penstock.cli.main import penstock
from penstock.client import Client
from penstock.model.plan_notes import PlanNoteBody
from penstock.model.requests import BatchAdmissionBody, BatchInputBody, BatchReport, TermsBody
from support.servers.http_server import Served

NAME = "hot"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the test's server."""
    return tmp_path_factory.mktemp("deadlines") / "data"


def asked(after: int, **more: object) -> BatchAdmissionBody:
    return BatchAdmissionBody(
        query="0-1-2",
        application="app",
        cores=2,
        inputs=[BatchInputBody(0, NAME, after)],
        terms=TermsBody(deadline_ms=60_000.0, policy="deadline"),
        name=NAME,
        **more,  # type: ignore[arg-type]
    )


def run(data: Path, *args: str) -> tuple[int, str, str]:
    ended = CliRunner().invoke(penstock, [*args, "--data", str(data)])
    message = "" if ended.exception is None else str(ended.exception)
    return ended.exit_code, ended.stdout, ended.stderr + message


def test_a_running_query_is_explained_and_gets_another_deadline(data: Path) -> None:
    with Served(data) as served, Client(served.url, served.token) as client:
        client.create(NAME, "k bigint")
        end = client.append(NAME, pa.table({"k": [1, 2, 3]})).position
        first = client.admit_batch(asked(0))
        assert first.is_cut
        report = BatchReport(first.cut or 0, rows=3, core_ms=5.0, visible_ms=90.0)
        old = [BatchReport(number, rows=3, visible_ms=90.0) for number in (1, 2, 3)]
        client.append(NAME, pa.table({"k": [4]}))
        notes = [PlanNoteBody("panes", 0, "left to Spark: windows do not overlap", 3)]
        waits = client.admit_batch(
            asked(end, reports=[report, *old], is_first=True, plan_notes=notes)
        )
        assert not waits.is_cut

        code, out, _ = run(data, "explain", NAME)
        assert code == 0
        assert "policy deadline" in out
        assert "deadline 60000 ms (set by: query)" in out
        assert "90 ms" in out  # measured
        assert "more rows may come" in out
        said = "panes, operator 0, since batch 3: left to Spark: windows do not overlap"
        assert said in out.splitlines()
        code, out, _ = run(data, "explain", "0-1-2", "--json")
        assert [line["is_cut"] for line in json.loads(out)["decisions"]] == [False, True]

        code, out, err = run(data, "query", "deadline", NAME, "20ms")
        assert (code, out) == (0, "query hot: 20 ms\n")
        assert "below the floor: the smallest batch of this query takes" in err
        code, out, _ = run(data, "query", "deadline", NAME, "own")
        assert out == "query hot: 60000 ms\n"

        code, _, err = run(data, "query", "deadline", NAME, "0s")
        assert code != 0
        assert "the deadline '0s' is not a time above 0" in err
        code, _, err = run(data, "explain", "nobody")
        assert code != 0
        assert "knows no query 'nobody'" in err
