"""Routes of admission with deadlines: the question, what an operator may change, and why."""

from __future__ import annotations

import msgspec
from aiohttp import web

from penstock.admission.batch_question import (
    BatchAnswer,
    BatchQuestion,
    LogInput,
    OutsideInput,
)
from penstock.admission.cut import Limits
from penstock.admission.explain import explain, floor_warning, metrics_text
from penstock.admission.offer import CutsBy, Waiting
from penstock.admission.question import Input, QueryRun
from penstock.admission.terms import CountedFrom, PolicyName, Terms, terms_problem
from penstock.errors import BadCall
from penstock.gateway.context import Gateway, gateway_of
from penstock.gateway.encode import json_answer
from penstock.gateway.inline_rows import inline_rows
from penstock.gateway.parse import bad_request, query_id, short_text
from penstock.model.admission_answers import QueryDeadline
from penstock.model.answers import BatchAdmission
from penstock.model.ids import Instance, Lsn, stream_name
from penstock.model.requests import (
    BatchAdmissionBody,
    BatchInputBody,
    DeadlineBody,
    OfferBody,
    TermsBody,
)


async def admit_batch(request: web.Request) -> web.Response:
    """`POST /v1/admission/batch`: may the next batch of a query begin, and with what; held while
    it may not."""
    gateway = gateway_of(request)
    body = await gateway.json_body(request, BatchAdmissionBody)
    question = _question(body, gateway.hold_s(body.wait_ms))
    answer = await gateway.batch_admission.ask(question)
    if answer.cut is not None:
        answer = _with_rows(gateway, body, answer)
    return json_answer(_answered(answer, gateway.server_id))


async def explain_query(request: web.Request) -> web.Response:
    """`GET /v1/queries/Q/admission`: a query's last decisions and figures; Q may be its name."""
    gateway = gateway_of(request)
    runner = gateway.batch_admission
    kept, now_ms = runner.books.named(request.match_info["query"]), runner.now_ms()
    devices = gateway.planner.explain(kept.book.query, now_ms)
    explained = explain(kept.book, runner.books.load_for(kept.book, now_ms), now_ms)
    notes = kept.plan_notes()
    return json_answer(msgspec.structs.replace(explained, devices=devices, plan_notes=notes))


async def set_deadline(request: web.Request) -> web.Response:
    """`PUT /v1/queries/Q/deadline`: another deadline from the next decision on; Q may be a name."""
    gateway = gateway_of(request)
    body = await gateway.json_body(request, DeadlineBody)
    kept = gateway.batch_admission.books.named(request.match_info["query"])
    problem = terms_problem(Terms(deadline_ms=body.deadline_ms))
    if problem is not None:
        raise BadCall(problem, code="bad_terms")
    gateway.batch_admission.set_deadline(kept, body.deadline_ms)
    book = kept.book
    return json_answer(QueryDeadline(book.query, book.name, book.deadline_ms, floor_warning(book)))


async def metrics(request: web.Request) -> web.Response:
    """`GET /v1/metrics`: the figures of every query, as Prometheus reads them."""
    runner = gateway_of(request).batch_admission
    now_ms = runner.now_ms()
    text = metrics_text(runner.books.shown(now_ms), now_ms)
    return web.Response(text=text, content_type="text/plain", charset="utf-8")


def _question(body: BatchAdmissionBody, wait_s: float) -> BatchQuestion:
    query = query_id(body.query)
    return BatchQuestion(
        query,
        short_text(body.application, "'application'"),
        body.cores,
        tuple(_input(each) for each in body.inputs),
        _terms(body.terms),
        None if body.name is None else short_text(body.name, "'name'"),
        None if body.instance is None else QueryRun(query, Instance(body.instance)),
        body.is_first,
        body.must_cut,
        tuple(body.reports),
        body.schedule,
        wait_s,
        body.pipeline,
        tuple(body.plan_notes),
    )


def _input(body: BatchInputBody) -> LogInput | OutsideInput:
    if (body.stream is None) == (body.offer is None):
        raise bad_request(
            f"source {body.source} has to have either 'stream' or 'offer'; give one of them"
        )
    if body.offer is not None:
        return OutsideInput(_waiting(body.source, body.offer))
    until = None if body.until is None else Lsn(body.until)
    return LogInput(
        body.source,
        Input(stream_name(body.stream or ""), Lsn(body.after)),
        body.number,
        Limits(body.rows_max, body.bytes_max, until),
    )


def _waiting(source: int, offer: OfferBody) -> Waiting:
    return Waiting(
        source, offer.rows, offer.bytes, offer.files, offer.age_ms, CutsBy(offer.cuts_by)
    )


def _terms(body: TermsBody) -> Terms:
    try:
        policy = PolicyName(body.policy)
    except ValueError:
        names = ", ".join(PolicyName)
        raise BadCall(
            f"there is no policy '{body.policy}'; give one of: {names}", code="bad_terms"
        ) from None
    try:
        counted_from = CountedFrom(body.counted_from)
    except ValueError:
        raise BadCall(
            f"a deadline cannot count from '{body.counted_from}'; give arrival or origin",
            code="bad_terms",
        ) from None
    return Terms(
        body.deadline_ms, policy, body.interval_ms, body.slide_ms, body.importance, counted_from
    )


def _with_rows(gateway: Gateway, body: BatchAdmissionBody, answer: BatchAnswer) -> BatchAnswer:
    """The answer, with the rows of inputs that want them with it."""
    inputs = []
    for asked, admitted in zip(body.inputs, answer.inputs, strict=True):
        if asked.stream is not None and admitted.end is not None:
            pages = inline_rows(gateway, stream_name(asked.stream), asked, admitted.end)
            admitted = msgspec.structs.replace(admitted, pages=pages)
        inputs.append(admitted)
    return msgspec.structs.replace(answer, inputs=tuple(inputs))


def _answered(answer: BatchAnswer, server: str) -> BatchAdmission:
    return BatchAdmission(
        server,
        answer.cut is not None,
        answer.cut,
        answer.inputs,
        answer.left_ms,
        answer.weight,
        answer.predicted_ms,
        answer.reason,
        answer.policy,
        answer.deadline_ms,
        answer.plan,
    )
