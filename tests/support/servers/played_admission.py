"""Admission played by a test: a proxy that answers the questions of queries with a deadline itself.

All else goes to the server behind it. So a test on real Spark says when data are withheld and how
much a batch takes, and looks at every question.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from support.servers.forwarding_proxy import Answer, ForwardingProxy, Request

PATH = "/v1/admission/batch"
HELD_S_MAX = 0.1

Question = dict[str, Any]
PlanOf = Callable[[Question, int], dict[str, Any]]
"""The plan of a batch, by its question and the number of its cut."""


class PlayedAdmission(ForwardingProxy):
    """Cuts whatever there is, unless it withholds.

    `is_withholding`: data wait unless the question forbids it. `takes`: by source, how much of an
    offer a batch takes. `server`: the name it answers under. `is_answering`: while it is cleared,
    no question is answered, however short a time it asked to be held. `plan_of`: makes the plan of
    a batch that was cut, for a question with a pipeline. Questions and answers are kept in order.
    """

    def __init__(self, server_url: str) -> None:
        super().__init__(server_url)
        self.questions: list[Question] = []
        self.answers: list[dict[str, Any]] = []
        self.is_withholding = False
        self.takes: dict[int, int] = {}
        self.server = "first"
        self.left_ms = 1_000.0
        self.is_answering = threading.Event()
        self.is_answering.set()
        self.plan_of: PlanOf | None = None
        self._cuts = 0
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        if request.path != PATH:
            return self.forward(request)
        question: Question = json.loads(request.body)
        # Sources over one stream see the same of it, whatever is appended between two questions.
        latest: dict[str, int] = {}
        inputs = [self._input(request, each, latest) for each in question["inputs"]]
        has_data = any(_has_data(each) for each in question["inputs"]) or any(
            given.get("end", 0) > asked.get("after", 0)
            for given, asked in zip(inputs, question["inputs"], strict=True)
        )
        is_cut = has_data and (question["must_cut"] or not self.is_withholding)
        with self._lock:
            self._cuts += is_cut
            answer = {
                "server": self.server,
                "is_cut": is_cut,
                "cut": self._cuts if is_cut else None,
                "inputs": inputs,
                "left_ms": self.left_ms,
                "weight": 0.5,
                "predicted_ms": 100.0,
                "reason": "the test says so",
                "policy": question["terms"]["policy"],
                "deadline_ms": question["terms"].get("deadline_ms"),
            }
            if is_cut and self.plan_of is not None and "pipeline" in question:
                answer["plan"] = self.plan_of(question, self._cuts)
            self.questions.append(question)
            self.answers.append(answer)
        self.is_answering.wait()
        if not is_cut:
            time.sleep(min(question["wait_ms"] / 1000, HELD_S_MAX))
        headers = {"Content-Type": "application/json", PROTOCOL_HEADER: str(PROTOCOL)}
        return Answer(200, headers, json.dumps(answer).encode())

    @property
    def cuts(self) -> int:
        """The number of batches that were cut so far."""
        return self._cuts

    def asked_for(self, query: str) -> list[Question]:
        """The questions of one query so far."""
        with self._lock:
            return [question for question in self.questions if question["query"] == query]

    def _input(
        self, request: Request, asked: dict[str, Any], latest: dict[str, int]
    ) -> dict[str, Any]:
        source = asked["source"]
        if "stream" not in asked:
            return {"source": source, "take": self.takes.get(source, "all")}
        simple = {name: asked[name] for name in ("stream", "after")}
        for name in ("rows_max", "bytes_max", "until"):
            if name in asked:
                simple[name] = asked[name]
        if asked["stream"] in latest and simple.get("until") is None:
            simple["until"] = max(latest[asked["stream"]], asked["after"])
        body = json.dumps(simple).encode()
        given = self.forward(replace(request, path="/v1/admission", body=body))
        answer = json.loads(given.body)
        latest.setdefault(asked["stream"], answer["latest"])
        return {"source": source, **answer}


def _has_data(asked: dict[str, Any]) -> bool:
    return asked.get("offer", {}).get("age_ms") is not None
