"""The data folder: its format, its lock, and a look at the store's file before it is mapped.

format.json   {"format": 5}
lock          held (flock) by the server for life; names its pid
log/          the store
index.json    of which log elsewhere the store is an index; not there when it is the log itself
reserve       room on the disk that is given back when trims need it
token         the token clients must send, readable by the owner only
server.json   where the running server listens; there while it does
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.errors import BadCall, Damaged

FORMAT = 5
"""1 has no checkpoint files, 2 no records, and 4 may have queries whose output is hidden until a
barrier shows it. All are read as they are, every commit visible; an older version, which could
hide rows again, is refused by the number."""

OWN_FILES = ("format.json", "lock", "log", "index.json", "token", "server.json", "server.log")

_META = struct.Struct("<IIQQ")
_META_AT = 16
_PAGE_SIZE_AT = _META_AT + _META.size
_LAST_PAGE_AT = _PAGE_SIZE_AT + 96
_MAGIC = 0xBEEFC0DE


class Folder:
    """One data folder, locked from `open` to `close`."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @staticmethod
    def open(path: Path) -> Folder:
        """Make the folder if need be and lock it; refused while another server has it, and when
        its store is only the index of a log elsewhere."""
        folder = Folder._locked(path)
        named = folder.read_index().get("log")
        if named is not None:
            folder.close()
            raise BadCall(
                f"the data folder {path} holds an index of the log {named} and no log of its own; "
                f"start with --log {named}, or give another folder",
                code="bad_request",
            )
        return folder

    @staticmethod
    def open_index(path: Path) -> Folder:
        """The same for the index of a log elsewhere; refused when the folder holds a log itself."""
        folder = Folder._locked(path, index=True)
        if (path / "format.json").exists() and not folder.read_index():
            folder.close()
            raise BadCall(
                f"the data folder {path} holds a log of its own; start without --log, or give "
                "another folder",
                code="bad_request",
            )
        return folder

    @staticmethod
    def _locked(path: Path, *, index: bool = False) -> Folder:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            make_private(path)
        except OSError as error:
            raise BadCall(
                f"the data folder {path} cannot be used: {error.strerror}; give one that can be "
                "written to",
                code="bad_request",
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 64).decode("ascii", "replace").strip()
            os.close(lock)
            raise BadCall(
                f"the data folder {path} is in use by the server with pid {holder or 'unknown'}, "
                f"listening at {read_server(path).get('url', 'an address not yet known')}; "
                "use that one, stop it first, or give another folder",
                code="bad_request",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode("ascii"), 0)
        folder = Folder(path, lock)
        try:
            folder._check_format(index=index)
        except BaseException:
            folder.close()
            raise
        return folder

    @property
    def store(self) -> Path:
        return self.path / "log"

    def close(self) -> None:
        os.close(self._lock)

    def _check_format(self, *, index: bool) -> None:
        """Refuse a folder written by a newer version, or one whose store has gone."""
        file = self.path / "format.json"
        if not file.exists():
            return
        try:
            number = json.loads(file.read_text("utf-8"))["format"]
        except (ValueError, KeyError, TypeError):
            raise Damaged(
                f"{file} cannot be read; restore the data folder from a backup", code="damaged"
            ) from None
        if not isinstance(number, int) or number > FORMAT:
            raise BadCall(
                f"the data folder {self.path} has format {number}, and this version of Penstock "
                f"reads up to format {FORMAT}; upgrade Penstock",
                code="bad_request",
            )
        if not index and not (self.store / "data.mdb").exists():
            raise Damaged(
                f"{self.store / 'data.mdb'} is gone; restore the data folder from a backup",
                code="damaged",
            )

    def write_format(self) -> None:
        """Say that the store is complete and what it may hold; only after it has been made."""
        file = self.path / "format.json"
        text = json.dumps({"format": FORMAT}) + "\n"
        if not file.exists() or file.read_text("utf-8") != text:
            _write(file, text)

    def read_index(self) -> dict[str, Any]:
        """The facts that `write_index` wrote; empty if the store is the log itself."""
        return _read_json(self.path / "index.json")

    def write_index(self, named: dict[str, Any]) -> None:
        """Say of which log elsewhere the store is an index."""
        _write(self.path / "index.json", json.dumps(named) + "\n")

    def token_file(self) -> Path:
        """The file in the folder with its token, which is made the first time."""
        file = self.path / "token"
        if not file.exists() or not file.read_text("ascii").strip():
            _write(file, secrets.token_urlsafe(32) + "\n")
        return file

    def write_server(self, url: str, token: str) -> None:
        """Tell clients on this machine where the server is."""
        body = {"url": url, "token": token, "pid": os.getpid()}
        _write(self.path / "server.json", json.dumps(body) + "\n")

    def remove_server(self) -> None:
        (self.path / "server.json").unlink(missing_ok=True)


def read_server(path: Path) -> dict[str, Any]:
    """The facts that a running server wrote about itself; empty if there is none."""
    return _read_json(path / "server.json")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def make_private(folder: Path) -> None:
    """Let nobody but its owner into a data folder or a backup, nor at the files of ours in it.
    Those of another owner are left alone: whoever runs this may use them, and not more."""
    files = (path for path in (folder / name for name in OWN_FILES) if path.exists())
    for path in (folder, *files, *folder.glob("log/*")):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077 and status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode):
            path.chmod(mode & 0o700)


def _write(file: Path, text: str) -> None:
    """Replace a small file as a whole: durable, its owner's alone, and never seen half written."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, text.encode("utf-8"))
        os.fsync(handle)
    finally:
        os.close(handle)
    fresh.replace(file)
    parent = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def missing_bytes(data: Path) -> int:
    """By how much the store's file is shorter than the pages it says it has.

    Reading a mapped page beyond the end of the file kills the process, so this is asked with
    plain reads before anything is mapped.
    """
    size = data.stat().st_size
    with data.open("rb") as file:
        first = file.read(_LAST_PAGE_AT + 16)
        if len(first) < _LAST_PAGE_AT + 16:
            return 0 if size == 0 else max(1, _LAST_PAGE_AT + 16 - size)
        if _META.unpack_from(first, _META_AT)[0] != _MAGIC:
            raise Damaged(
                f"{data} does not begin as a log does; restore the data folder from a backup",
                code="damaged",
            )
        (page,) = struct.unpack_from("<I", first, _PAGE_SIZE_AT)
        file.seek(page)
        second = file.read(_LAST_PAGE_AT + 16)
    last, txn = struct.unpack_from("<QQ", first, _LAST_PAGE_AT)
    if len(second) == _LAST_PAGE_AT + 16:
        last2, txn2 = struct.unpack_from("<QQ", second, _LAST_PAGE_AT)
        last = last2 if txn2 > txn else last
    return max(0, (int(last) + 1) * int(page) - size)


def check_whole(data: Path) -> None:
    """Refuse a store whose file has been cut short.

    Pages at the end that were freed before they were ever written may be missing by right. So if
    the file is short, a child process reads all that is stored: it dies if a page that is in use
    is missing, and the file is then refused; otherwise the file is made as long as it says it is.
    """
    short = missing_bytes(data)
    if short == 0:
        return
    probe = subprocess.run(
        [sys.executable, "-m", "penstock.log.store.probe", str(data.parent)],
        capture_output=True,
        check=False,
    )
    if probe.returncode != 0:
        raise Damaged(
            f"{data} is {short} bytes shorter than the pages it holds: it has been cut short; "
            "restore the data folder from a backup",
            code="damaged",
        )
    os.truncate(data, data.stat().st_size + short)
