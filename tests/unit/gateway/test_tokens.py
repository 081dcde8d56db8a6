"""Tokens: read from a file, told apart by what they may do, rotated while the server runs."""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import BadCall
from penstock.gateway.scopes import ROUTES
from penstock.gateway.tokens import LOOK_S, Token, Tokens, parse_tokens, read_tokens
from penstock.testing.clock import ManualClock

TEXT = """
# token        scopes        who
first-token    append        web-1
second-token   read,query    dash boards
third-token
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "tokens", TEXT)


def written(file: Path, text: str) -> Path:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    return fresh.replace(file)


def test_a_line_is_a_token_its_scopes_and_a_name() -> None:
    first, second, third = parse_tokens(TEXT, "file")
    assert first == Token("first-token", frozenset({"append"}), "web-1")
    assert second == Token("second-token", frozenset({"read", "query"}), "dash boards")
    assert third.scopes == {"admin"}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "has 0 tokens"),
        ("# none\n", "has 0 tokens"),
        ("short read\n", "line 1 of file has a token of 5 characters"),
        ("long-enough read,write\n", "line 1 of file has the scope 'write'"),
        ("long-enough\nlong-enough read\n", "has a token twice"),
        ("".join(f"token-number-{n}\n" for n in range(101)), "has 101 tokens"),
    ],
)
def test_a_file_that_is_none_is_refused_and_shows_no_token(text: str, fact: str) -> None:
    with pytest.raises(BadCall, match=fact) as refused:
        parse_tokens(text, "file")
    assert "long-enough" not in refused.value.message


def test_a_file_that_others_may_read_is_refused(file: Path) -> None:
    file.chmod(0o640)
    with pytest.raises(BadCall, match="chmod 600"):
        read_tokens(file)
    with pytest.raises(BadCall, match="cannot be read"):
        read_tokens(file / "nothing")


def test_who_may_do_everything_may_do_what_no_scope_is_named_for() -> None:
    append, _, admin = parse_tokens(TEXT, "file")
    assert append.may(("append", "query"))
    assert not append.may(("read",))
    assert not append.may(())
    assert admin.may(())


def test_a_token_is_found_only_as_it_is(file: Path) -> None:
    tokens = Tokens("given", file, ManualClock())
    assert found_name(tokens, "Bearer given") == "given"
    assert found_name(tokens, "bearer first-token") == "web-1"
    for wrong in ("", "Bearer", "Bearer ", "first-token", "Basic first-token", "Bearer first",
                  "Bearer first-token ", "Bearer f\udce4"):  # fmt: skip
        assert tokens.find(wrong) is None


def found_name(tokens: Tokens, authorization: str) -> str | None:
    token = tokens.find(authorization)
    return None if token is None else token.name


def test_every_token_is_compared_in_constant_time_whichever_is_sent(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def counting(known: bytes, sent: bytes) -> bool:
        compared.append((known, sent))
        return known == sent

    tokens = Tokens(None, file, ManualClock())
    monkeypatch.setattr(hmac, "compare_digest", counting)
    for sent in ("Bearer first-token", "Bearer third-token", "Bearer none of them"):
        compared.clear()
        tokens.find(sent)
        assert len(compared) == 3
        assert all(len(known) == len(sent) for known, sent in compared)


def test_a_file_is_read_anew_when_it_changes(file: Path) -> None:
    clock, local = ManualClock(), list[str]()
    tokens = Tokens(None, file, clock, lambda token: local.append(token.text))
    assert tokens.local.text == "third-token"
    written(file, "fourth-token\nfirst-token append\n")
    assert tokens.find("Bearer fourth-token") is None
    clock.turn(LOOK_S * 1000)
    assert tokens.find("Bearer fourth-token") is not None
    assert tokens.find("Bearer first-token") is not None
    assert tokens.find("Bearer third-token") is None
    assert local == ["fourth-token"]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: written(file, "bad\n")])
def test_a_file_that_cannot_be_used_leaves_the_tokens_as_they_were(
    file: Path, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    tokens = Tokens(None, file, clock)
    spoil(file)
    clock.turn(LOOK_S * 1000)
    with caplog.at_level(logging.ERROR):
        assert tokens.find("Bearer first-token") is not None
    assert "the tokens stay as they were" in caplog.text
    written(file, TEXT.replace("first-token", "fresh-token"))
    os.utime(file, ns=(1, 1))
    clock.turn(LOOK_S * 1000)
    assert tokens.find("Bearer fresh-token") is not None


def test_only_health_is_open_and_what_destroys_or_steers_needs_admin() -> None:
    assert [route.path for route in ROUTES if route.scopes is None] == ["/v1/health"]
    for route in ROUTES:
        needs_admin = route.method in ("DELETE", "PATCH") or route.path.endswith(
            ("/trim", "/reset", "/collect", "/backup", "/deadline")
        )
        assert (route.scopes == ()) == needs_admin, route
