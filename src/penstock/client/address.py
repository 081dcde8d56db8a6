"""The address of a server: told by the caller, by the environment, or by the server's own file.

A running server leaves `server.json` in its data folder, readable by its owner only. The file may
outlive its server, so an address found there is a guess until the server has answered.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from penstock.errors import BadCall

DATA_DEFAULT = "penstock-data"
URL_VARIABLE = "PENSTOCK_URL"
TOKEN_VARIABLE = "PENSTOCK_TOKEN"
TOKEN_FILE_VARIABLE = "PENSTOCK_TOKEN_FILE"
CA_VARIABLE = "PENSTOCK_CA"


class Address(msgspec.Struct, frozen=True):
    """A server's URL, the token it wants, and the PEM file that vouches for it, if any."""

    url: str
    token: str
    ca: str | None = None

    def __repr__(self) -> str:
        return f"Address(url={self.url!r}, token=..., ca={self.ca!r})"


class ServerFile(msgspec.Struct, frozen=True):
    """The content of `server.json`; fields this version does not know are ignored."""

    url: str
    token: str
    pid: int
    ca: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.url, self.token, self.ca)


def server_file(data: str | Path) -> Path:
    return Path(data) / "server.json"


def read_server_file(data: str | Path) -> ServerFile | None:
    """The file that the server of that data folder left; None without a file.

    A file that cannot be read or understood is an error: starting a second server over it would
    only move the trouble.
    """
    path = server_file(data)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ServerFile)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise BadCall(
            f"{path} cannot be read ({error}); stop the server of that folder and remove the file",
            code="bad_server_file",
        ) from error


def read_token(file: str | Path) -> str:
    """The first token of a file, as `penstock serve --token-file` takes them."""
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCall(
            f"the token file {file} cannot be read: {error}; give one that can", code="bad_token"
        ) from error
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    words = next((words for words in lines if words), None)
    if words is None:
        raise BadCall(f"the file {file} has no token; put one on a line", code="bad_token")
    return words[0]


def token_from_environment(environ: Mapping[str, str] = os.environ) -> str:
    """The token in PENSTOCK_TOKEN, else in the file that PENSTOCK_TOKEN_FILE names, else none."""
    token, file = environ.get(TOKEN_VARIABLE), environ.get(TOKEN_FILE_VARIABLE)
    return token or (read_token(file) if file else "")


def from_environment(environ: Mapping[str, str] = os.environ) -> Address | None:
    """The address in PENSTOCK_URL, with its token and PENSTOCK_CA; None without a URL."""
    url = environ.get(URL_VARIABLE)
    if not url:
        return None
    return Address(url, token_from_environment(environ), environ.get(CA_VARIABLE) or None)


def find(
    url: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    data: str | Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Address | None:
    """The first address there is: given, in the environment, in `data`'s server file.

    A given `url` takes missing parts from the environment, so that a token need not be on a
    command line. A given `data` comes before the environment: it names one server.
    """
    configured = from_environment(environ)
    if url is not None:
        return Address(
            url,
            token if token is not None else token_from_environment(environ),
            ca or environ.get(CA_VARIABLE) or None,
        )
    if data is None and configured is not None:
        return configured
    left = read_server_file(data if data is not None else DATA_DEFAULT)
    return left.address if left is not None else None


def no_server(data: str | Path | None = None) -> BadCall:
    """The error for a call that needs a server when none is named anywhere."""
    folder = data if data is not None else DATA_DEFAULT
    return BadCall(
        f"no server is known: start one with 'penstock serve --data {folder}', or set "
        f"{URL_VARIABLE} and {TOKEN_VARIABLE}, or call penstock.session() first",
        code="no_server",
    )
