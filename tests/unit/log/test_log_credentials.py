"""Logins for a log in JetStream come from a file, in one of three forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BadCall
from penstock.log.address import log_address
from penstock.log.backends.jetstream.connection import login_options

CREDS = "-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("me:secret:with:colons\n", {"user": "me", "password": "secret:with:colons"}),
        ("a-token\n", {"token": "a-token"}),
    ],
)
def test_one_line_is_a_user_with_a_password_or_a_token(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    (tmp_path / "login").write_text(text)
    assert login_options(tmp_path / "login") == options


def test_a_file_of_nats_is_handed_to_its_client(tmp_path: Path) -> None:
    (tmp_path / "login").write_text(CREDS)
    assert login_options(tmp_path / "login") == {"user_credentials": str(tmp_path / "login")}


def test_without_a_file_there_is_no_login() -> None:
    assert login_options(None) == {}
    assert log_address("nats://a/s").credentials is None


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n", None])
def test_a_file_that_holds_none_is_refused_without_its_content(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "login").write_text(text)
    with pytest.raises(BadCall) as refused:
        login_options(tmp_path / "login")
    assert "two" not in refused.value.message
