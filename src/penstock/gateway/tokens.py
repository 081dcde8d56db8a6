"""Tokens and what each may do, read anew when their file changes: one is rotated without a restart.

A file of tokens has one a line: the token, then its scopes, separated by commas, then a name for
people. A line with a token alone may do everything. `#` begins a comment.

    # token                  scopes        who
    kqXh0uY1wZs9...          append        web-1
    5mTq8cVb2nLd...          read,query    dashboards
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from penstock.clock import Clock
from penstock.errors import BadCall

Scope = Literal["append", "read", "query", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
ADMIN: frozenset[Scope] = frozenset(("admin",))
TOKENS_MAX = 100
"""Every request is compared with each, so that how long that takes says nothing."""
TOKEN_LENGTH_MIN = 8
LOOK_S = 1.0
_LOG = logging.getLogger("penstock.gateway")


class Token(NamedTuple):
    """A token, the scopes it has, and whose it is. Requests are compared with its digest."""

    text: str
    scopes: frozenset[Scope]
    name: str = ""

    @property
    def digest(self) -> bytes:
        return digest(self.text)

    def may(self, wanted: Iterable[Scope]) -> bool:
        """Whether the token has one of the scopes wanted; `admin` has all of them."""
        return "admin" in self.scopes or not self.scopes.isdisjoint(wanted)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def parse_tokens(text: str, source: str) -> tuple[Token, ...]:
    """The tokens of a file's text; a line that is none is refused by its number, never shown."""
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            tokens.append(_token(words, f"line {number} of {source}"))
    if not 1 <= len(tokens) <= TOKENS_MAX:
        raise _bad(f"{source} has {len(tokens)} tokens, and must have 1 to {TOKENS_MAX}")
    if len({token.text for token in tokens}) != len(tokens):
        raise _bad(f"{source} has a token twice; give each once, with all its scopes")
    return tuple(tokens)


def _token(words: list[str], place: str) -> Token:
    if len(words[0]) < TOKEN_LENGTH_MIN or not words[0].isascii():
        raise _bad(
            f"{place} has a token of {len(words[0])} characters, and one has {TOKEN_LENGTH_MIN} "
            "or more, all ASCII; make one with: openssl rand -base64 32"
        )
    scopes = words[1].split(",") if len(words) > 1 else list(ADMIN)
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise _bad(f"{place} has the scope {unknown[0]!r}, and there are {', '.join(SCOPES)}")
    return Token(words[0], frozenset(cast("list[Scope]", scopes)), " ".join(words[2:]))


def _bad(message: str) -> BadCall:
    return BadCall(message, code="bad_request")


def read_tokens(file: Path) -> tuple[Token, ...]:
    """The tokens of a file, which only its owner may read."""
    try:
        mode = file.stat().st_mode
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(
            f"the file of tokens {file} cannot be read: {error}; give one that can"
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise _bad(f"others than its owner may use the file of tokens {file}; chmod 600 {file}")
    return parse_tokens(text, str(file))


class Tokens:
    """The tokens of a running server: one that was given, and those of a file as it is."""

    def __init__(
        self,
        given: str | None,
        file: Path | None,
        clock: Clock,
        on_change: Callable[[Token], None] = lambda _: None,
    ) -> None:
        """`on_change` is called with the token for clients on this machine when it is another."""
        self._given = () if given is None else (Token(given, ADMIN, "given"),)
        self._file = file
        self._clock = clock
        self._on_change = on_change
        self._looked_at_s = clock.monotonic_s()
        self._stamp = self._stamp_now()
        self._take(() if file is None else read_tokens(file))

    def _take(self, of_file: tuple[Token, ...]) -> None:
        self._tokens: tuple[Token, ...] = (*self._given, *of_file)
        self._digests = [(token.digest, token) for token in self._tokens]

    @property
    def local(self) -> Token:
        """The token for clients on this machine: the first that may do everything, or the first."""
        admins = [token for token in self._tokens if "admin" in token.scopes]
        return (*admins, *self._tokens)[0]

    def find(self, authorization: str) -> Token | None:
        """The token that a request carries; None for none and for one that is not ours."""
        self._look()
        scheme, _, text = authorization.partition(" ")
        sent, match = digest(text), None
        for known, token in self._digests:
            if hmac.compare_digest(known, sent):
                match = token
        return match if scheme.lower() == "bearer" else None

    def _look(self) -> None:
        """Read the file anew if it has changed; one that cannot be used leaves things as they
        are."""
        now_s = self._clock.monotonic_s()
        if self._file is None or now_s - self._looked_at_s < LOOK_S:
            return
        self._looked_at_s = now_s
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp, before = stamp, self.local
        try:
            self._take(read_tokens(self._file))
        except BadCall as error:
            _LOG.error("the tokens stay as they were: %s", error)
            return
        _LOG.warning("the tokens of %s were read anew: %d", self._file, len(self._tokens))
        if self.local.text != before.text:
            self._on_change(self.local)

    def _stamp_now(self) -> tuple[int, int, int, int] | None:
        if self._file is None:
            return None
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode
