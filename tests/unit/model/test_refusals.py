"""Refusals: the body that servers send is the one that clients read."""

from __future__ import annotations

import json

import msgspec
import pytest

from penstock.errors import BadCall, Bug, Damaged, Fenced, PenstockError, TryAgain
from penstock.gateway.raw_answers import raw_answer
from penstock.model.refusals import Refusal, refusal_of

KINDS = (TryAgain, BadCall, Fenced, Damaged, Bug)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_comes_back_from_its_body_as_it_was(kind: type[PenstockError]) -> None:
    sent = kind("nothing changed", code="some_code", status=418)
    body = msgspec.json.encode(refusal_of(sent))
    read = msgspec.json.decode(body, type=Refusal).as_error(418)
    assert type(read) is kind
    assert (read.code, read.message, read.http_status) == ("some_code", "nothing changed", 418)


def test_the_body_has_code_act_and_sentence_in_this_order() -> None:
    text = '{"error": {"code": "stopping", "act": "retry", "message": "try again"}}'
    error = TryAgain("try again", code="stopping")
    assert json.dumps(msgspec.to_builtins(refusal_of(error))) == text
    _, _, body = raw_answer(error).partition(b"\r\n\r\n")
    assert body == msgspec.json.encode(json.loads(text))


def test_a_body_that_leaves_fields_out_is_a_fault_of_its_server() -> None:
    read = msgspec.json.decode(b'{"error": {}}', type=Refusal).as_error(500)
    assert (type(read), read.code, read.message) == (Bug, "bug", "no message")
