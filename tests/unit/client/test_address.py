"""Where a server is looked for, and in what order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock
from penstock.client import address
from penstock.client.address import Address
from penstock.errors import BadCall

ENVIRONMENT = {"PENSTOCK_URL": "http://env:1", "PENSTOCK_TOKEN": "env-token"}


def leave_file(folder: Path, **fields: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    server_file = {
        "url": "http://file:1",
        "token": "file-token",
        "pid": 1,
        "version": "9",
        **fields,
    }
    (folder / "server.json").write_text(json.dumps(server_file))
    return folder


def test_an_address_given_comes_before_all_others(tmp_path: Path) -> None:
    leave_file(tmp_path / "penstock-data")
    server = address.find("http://given:1", "t", environ=ENVIRONMENT)
    assert server == Address("http://given:1", "t")


def test_a_given_url_takes_its_token_from_the_environment() -> None:
    assert address.find("http://given:1", environ=ENVIRONMENT) == Address(
        "http://given:1", "env-token"
    )


def test_a_named_folder_comes_before_the_environment(tmp_path: Path) -> None:
    folder = leave_file(tmp_path / "mine", ca="ca.pem")
    server = address.find(data=folder, environ=ENVIRONMENT)
    assert server == Address("http://file:1", "file-token", "ca.pem")


def test_the_environment_comes_before_the_default_folder(tmp_path: Path) -> None:
    leave_file(tmp_path / "penstock-data")
    assert address.find(environ=ENVIRONMENT) == Address("http://env:1", "env-token")
    assert address.find(environ={}) == Address("http://file:1", "file-token")


def test_no_address_anywhere_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(BadCall, match=r"penstock serve.*PENSTOCK_URL.*penstock\.session"):
        penstock.read("bids")


def test_a_damaged_server_file_is_an_error_and_not_a_reason_to_start_another(
    tmp_path: Path,
) -> None:
    (tmp_path / "server.json").write_text("{")
    with pytest.raises(BadCall, match=r"server\.json cannot be read"):
        address.read_server_file(tmp_path)


def test_an_address_never_shows_its_token() -> None:
    assert "secret" not in repr(Address("http://x", "secret"))
