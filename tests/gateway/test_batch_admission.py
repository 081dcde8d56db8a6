"""Admission with deadlines over HTTP: the question of a whole query, and what operators see."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.servers.http_server import Answer, Served, table

ASAP = {"policy": "asap"}


def ask(served: Served, name: str, terms: dict[str, Any], **more: Any) -> Answer:
    body = {
        "query": name,
        "name": f"{name}-name",
        "application": "app",
        "cores": 2,
        "inputs": [{"source": 0, "stream": name, "after": 0}],
        "terms": terms,
        **more,
    }
    return served.ask("POST", "/admission/batch", body)


def admit(served: Served, name: str, terms: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = ask(served, name, terms, **more)
    assert answer.status == 200, answer.body
    return dict(answer.json())


def reports(count: int, first: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Batches of 1,000 rows that took 100 ms."""
    cost = {"rows": 1_000, "core_ms": 50.0, "longest_task_ms": 30.0, "tasks": 2, "visible_ms": 100}
    return [{"cut": first + number, **cost, **more} for number in range(count)]


def test_a_question_names_every_source_and_is_answered_for_each(served: Served, name: str) -> None:
    served.make(name, substreams=2)
    end = served.append(table(1, 2, 3), name).json()["position"]
    offer = {"rows": 5, "bytes": None, "files": 2, "age_ms": 7.5, "cuts_by": "files"}
    inputs = [{"source": 0, "stream": name, "after": 0}, {"source": 1, "offer": offer}]
    answer = admit(served, name, {"deadline_ms": 60_000, "policy": "asap"}, inputs=inputs)
    assert answer["is_cut"]
    assert answer["inputs"] == [
        {"source": 0, "end": end, "latest": end, "substreams": 2},
        {"source": 1, "take": "all"},
    ]
    assert (answer["policy"], answer["deadline_ms"], answer["weight"]) == ("asap", 60_000.0, 1.0)
    assert 0 < answer["left_ms"] <= 60_000
    following = admit(served, name, ASAP, inputs=[{"source": 0, "stream": name, "after": end}])
    assert (following["is_cut"], following["cut"]) == (False, None)
    assert following["inputs"] == [{"source": 0, "end": end, "latest": end, "substreams": 2}]
    assert following["server"] == answer["server"]


def test_reports_of_a_newer_plug_in_are_heard_and_questions_are_read_to_the_letter(
    served: Served, name: str
) -> None:
    served.make(name)
    newer = {"measured_by_a_later_version": 1}
    plan = {
        "path": "columnar",
        "operations": [{"first": 0, "device": "cpu", "ms": 1.0, **newer}],
        "fallbacks": [{"cause": "busy", **newer}],
        **newer,
    }
    notes = [{**note("panes", "on"), **newer}]
    admit(served, name, ASAP, reports=reports(5, plan=plan, **newer), plan_notes=notes)
    explained = served.ask("GET", f"/queries/{name}/admission").json()
    assert explained["fixed_ms"] is not None
    assert explained["plan_notes"] == [note("panes", "on")]
    for changed in ({"terms": {**ASAP, **newer}}, {"terms": ASAP, **newer}):
        answer = ask(served, name, **changed)
        assert (answer.status, answer.code) == (400, "bad_request")


def test_a_held_question_is_woken_by_data(patient: Served, name: str) -> None:
    patient.make(name)
    threading.Timer(0.3, lambda: patient.append(table(1), name)).start()
    began = time.monotonic()
    assert admit(patient, name, ASAP, wait_ms=60_000)["is_cut"]
    assert 0.3 <= time.monotonic() - began < 50


def test_a_held_question_is_answered_when_its_moment_comes(patient: Served, name: str) -> None:
    patient.make(name)
    patient.append(table(1), name)
    terms = {"deadline_ms": 800, "policy": "deadline"}
    began = time.monotonic()
    answer = admit(patient, name, terms, wait_ms=60_000, reports=reports(5))
    assert answer["is_cut"]
    assert 0.3 < time.monotonic() - began < 50
    # Reported batches were of one size: half of their 100 ms counts as fixed.
    assert answer["left_ms"] <= answer["predicted_ms"] + 10
    assert "may be needed" in answer["reason"]


def test_data_are_not_withheld_from_who_must_cut(patient: Served, name: str) -> None:
    patient.make(name)
    patient.append(table(1), name)
    terms = {"deadline_ms": 60_000, "policy": "deadline"}
    withheld = admit(patient, name, terms, is_first=True, reports=reports(5), wait_ms=60_000)
    assert not withheld["is_cut"]
    assert admit(patient, name, terms, must_cut=True, wait_ms=60_000)["is_cut"]


def test_an_operator_changes_a_deadline_and_sees_why(served: Served, name: str) -> None:
    served.make(name)
    served.append(table(1), name)
    terms = {"deadline_ms": 60_000, "policy": "deadline"}
    assert not admit(served, name, terms, is_first=True, reports=reports(5))["is_cut"]
    changed = served.ask("PUT", f"/queries/{name}-name/deadline", {"deadline_ms": 20.0}).json()
    assert (changed["query"], changed["deadline_ms"]) == (name, 20.0)
    assert "below the floor" in changed["warning"]
    answer = admit(served, name, terms, is_first=True)
    assert answer["is_cut"]
    assert "below the floor" in answer["reason"]
    explained = served.ask("GET", f"/queries/{name}/admission").json()
    assert [line["is_cut"] for line in explained["decisions"]] == [True, False]
    assert explained["deadline_set_by"] == "operator"
    assert explained["floor_ms"] > 20
    metrics = served.ask("GET", "/metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain")
    line = f'penstock_admission_deadline_seconds{{query="{name}",name="{name}-name"}} 0.02'
    assert line in metrics.body.decode()
    taken_back = served.ask("PUT", f"/queries/{name}/deadline", {"deadline_ms": None}).json()
    assert taken_back["deadline_ms"] == 60_000.0


def note(rule: str, text: str, since_batch: int = 0, operator: int = 0) -> dict[str, Any]:
    return {"rule": rule, "operator": operator, "text": text, "since_batch": since_batch}


def test_notes_on_a_plan_are_explained_until_others_come(served: Served, name: str) -> None:
    served.make(name)

    def explained_after(*notes: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        with_notes = {"plan_notes": list(notes)} if notes else {}
        admit(served, name, ASAP, is_first=True, **with_notes, **more)
        return list(served.ask("GET", f"/queries/{name}/admission").json()["plan_notes"])

    panes, left = note("panes", "panes: 12 windows per row"), note("eviction", "left to Spark: so")
    assert explained_after() == []
    assert explained_after(panes, left) == [left, panes]
    assert explained_after() == [left, panes], "a question without notes changes none"
    assert explained_after(note("panes", "left to Spark: now", 7)) == [
        left,
        note("panes", "left to Spark: now", 7),
    ]
    many = [note("prefetch", "on", operator=number) for number in range(199)]
    assert len(explained_after(*many)) == 200
    assert left not in explained_after(), "of more than are kept, the oldest go"
    assert explained_after(application="another run") == []


@pytest.mark.parametrize(
    "notes",
    [
        [note("panes", "x" * 1_001)],
        [note("panes", "on", operator=-1)],
        [note("panes", "on", operator=number) for number in range(201)],
    ],
)
def test_notes_out_of_their_bounds_are_refused(
    served: Served, name: str, notes: list[dict[str, Any]]
) -> None:
    served.make(name)
    assert ask(served, name, ASAP, is_first=True, plan_notes=notes).status == 400


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"deadline_ms": 0}, "deadline is 0 ms"),
        ({"deadline_ms": -5}, "deadline is -5 ms"),
        ({"policy": "sometimes"}, "no policy 'sometimes'"),
        ({"policy": "slide"}, "needs the slide of a window"),
        ({"policy": "deadline"}, "needs a deadline"),
        ({"from": "monday"}, "count from 'monday'"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(
    served: Served, name: str, terms: dict[str, Any], words: str
) -> None:
    served.make(name)
    refused = ask(served, name, terms)
    assert (refused.status, refused.code) == (400, "bad_terms")
    assert words in refused.message


def test_a_source_is_a_stream_or_an_offer_and_a_query_is_known(served: Served, name: str) -> None:
    neither = ask(served, name, ASAP, inputs=[{"source": 0}])
    assert (neither.status, neither.code) == (400, "bad_request")
    unknown = served.ask("GET", f"/queries/{name}/admission")
    assert (unknown.status, unknown.code) == (404, "unknown_query")
    bad = served.ask("PUT", f"/queries/{name}/deadline", {"deadline_ms": 5})
    assert bad.code == "unknown_query"


def test_a_restarted_server_says_so_and_learns_again(tmp_path: Path) -> None:
    name = "restarted"
    terms = {"deadline_ms": 60_000, "policy": "deadline"}
    with Served(tmp_path / "data") as served:
        served.make(name)
        served.append(table(1), name)
        before = admit(served, name, terms)
    with Served(tmp_path / "data") as served:
        # It knows nothing, so the first batch is cut at once; then it hears of the last ones again.
        after = admit(served, name, terms)
        assert after["server"] != before["server"]
        assert after["cut"] > before["cut"]
        again = reports(5, first=before["cut"])
        assert not admit(served, name, terms, is_first=True, reports=again)["is_cut"]


PIPELINE = {
    "operations": [{"kind": "filter", "text": "speed < 40"}, {"kind": "aggregate"}],
    "machines": [{"cpu": "cpu x", "cores": 2}],
    "paths": ["spark", "panes", "columnar"],
    "windows": 12,
}


def test_a_question_with_a_pipeline_is_answered_with_a_plan_that_is_explained(
    served: Served, name: str
) -> None:
    served.make(name, substreams=2)
    end = served.append(table(1, 2, 3), name).json()["position"]
    without = admit(served, name, ASAP)
    assert "plan" not in without
    first = admit(served, name, ASAP, pipeline={**PIPELINE, "devices": "cpu"})
    assert first["plan"]["path"] == "columnar"
    assert [each["device"] for each in first["plan"]["operations"]] == ["cpu", "cpu"]
    assert first["plan"]["operations"][0]["reason"] == "no machine has a GPU"
    steps = [{"first": 0, "count": 2, "device": "cpu", "ms": 3.5, "bytes": 400, "tasks": 2}]
    ran = {"path": "columnar", "stage_ms": 60, "tasks": 2, "bytes": 400, "worker_ms": 50}
    report = {"cut": first["cut"], "visible_ms": 120, "plan": {**ran, "operations": steps}}
    inputs = [{"source": 0, "stream": name, "after": end}]
    more = {"pipeline": PIPELINE, "reports": [report], "inputs": inputs, "is_first": True}
    assert "plan" not in admit(served, name, ASAP, **more)
    devices = served.ask("GET", f"/queries/{name}/admission").json()["devices"]
    (plan,) = devices["plans"]
    assert (plan["ran_path"], plan["measured_ms"]) == ("columnar", 60)
    assert sum(each["measured_ms"] for each in plan["operations"]) == pytest.approx(3.5)
    assert plan["operations"][0]["text"] == "speed < 40"


def test_a_columnar_batch_that_ended_its_run_leaves_that_path_out_of_the_next(
    served: Served, name: str
) -> None:
    served.make(name, substreams=2)
    served.append(table(1, 2, 3), name)
    pipeline = {**PIPELINE, "policy": "all-cpu"}
    paths = [
        admit(served, name, ASAP, pipeline=pipeline, application=run)["plan"]["path"]
        for run in ("first", "first", "second", "second")
    ]
    assert paths == ["columnar", "columnar", "panes", "panes"]
    devices = served.ask("GET", f"/queries/{name}/admission").json()["devices"]
    assert any("the columnar path is left out for 298 batches" in each for each in devices["notes"])


def test_a_pipeline_that_makes_no_sense_is_refused(served: Served, name: str) -> None:
    served.make(name)
    forced = ask(served, name, ASAP, pipeline={**PIPELINE, "devices": "gpu"})
    assert (forced.status, forced.code) == (400, "no_gpu")
    assert "give every machine one, or set auto" in forced.message
    wrong_fields: list[dict[str, Any]] = [
        {"operations": [{"kind": "fly"}]},
        {"paths": []},
        {"devices": "tpu"},
    ]
    for wrong in wrong_fields:
        refused = ask(served, name, ASAP, pipeline={**PIPELINE, **wrong})
        assert (refused.status, refused.code) == (400, "bad_request")
