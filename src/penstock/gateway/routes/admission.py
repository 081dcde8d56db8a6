"""The route of admission: how far the next batch may read."""

from __future__ import annotations

from aiohttp import web

from penstock.admission.cut import Limits
from penstock.admission.question import Input, QueryRun, Question
from penstock.gateway.context import gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.inline_rows import inline_rows
from penstock.gateway.parse import bad_request, query_id
from penstock.model.answers import Admission
from penstock.model.ids import Instance, Lsn, stream_name
from penstock.model.requests import AdmissionBody


async def admit(request: web.Request) -> web.Response:
    """`POST /v1/admission`: how far the next batch may read, held while that is nowhere."""
    gateway = gateway_of(request)
    body = await gateway.json_body(request, AdmissionBody)
    question = _question(body, gateway.hold_s(body.wait_ms))
    answer = await gateway.admission.ask(question)
    pages = inline_rows(gateway, question.input.stream, body, answer.cut.end)
    return json_answer(Admission(answer.cut.end, answer.latest, answer.substreams, pages))


def _question(body: AdmissionBody, wait_s: float) -> Question:
    until = None if body.until is None else Lsn(body.until)
    return Question(
        Input(stream_name(body.stream), Lsn(body.after)),
        Limits(body.rows_max, body.bytes_max, until),
        _run(body),
        tuple(Input(stream_name(other.stream), Lsn(other.after)) for other in body.others),
        wait_s,
        body.source,
    )


def _run(body: AdmissionBody) -> QueryRun | None:
    """The run that asks; a query without its instance says nothing that is checked."""
    if body.instance is None:
        return None
    if body.query is None:
        raise bad_request("'instance' goes with 'query'; give both, or null for 'instance'")
    return QueryRun(query_id(body.query), Instance(body.instance))
