"""A checkpoint location on this machine: its files are read, and written whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import msgspec

from penstock.errors import BadCall, Damaged

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
METADATA = "metadata"
STATE = "state"


class _Metadata(msgspec.Struct):
    id: str


def path_of(text: str) -> Path:
    """The folder that a path or a `file:` URI names; another scheme is refused."""
    if not _SCHEME.match(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        raise BadCall(
            f"{text} is not on this machine; give a local path or a file: URI, or copy the "
            "location here, drain it, and copy it back",
            code="bad_request",
        )
    return Path(unquote(parts.path))


class Location:
    """One checkpoint folder. Paths are relative to it, as in the log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def query_id(self) -> str | None:
        """The id Spark wrote when the query first started; None without a `metadata` file."""
        file = self.folder / METADATA
        try:
            return msgspec.json.decode(file.read_bytes(), type=_Metadata).id
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise BadCall(
                f"{file} cannot be read as Spark's ({error}); give the checkpoint location of a "
                "streaming query",
                code="bad_request",
            ) from error

    def last_commit(self) -> int | None:
        """The last batch with a file in `commits`."""
        commits = self.folder / "commits"
        names = (each.name for each in commits.iterdir()) if commits.is_dir() else ()
        return max((int(name) for name in names if name.isascii() and name.isdigit()), default=None)

    def has(self, path: str) -> bool:
        return (self.folder / path).exists()

    def put(self, path: str, content: bytes, source: str) -> bool:
        """Write a file durably; False if it is there with the same bytes.

        State of other bytes is replaced: an attempt that never committed has left it. Any other
        file of other bytes is an error that names both; `source` says where these came from. A
        reader never sees a part of the file.
        """
        target = self.folder / path
        fresh = target.parent / f".{target.name}.{uuid4().hex}.tmp"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("xb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            is_state = path.startswith(f"{STATE}/")
            if is_state and target.exists() and target.read_bytes() == content:
                return False
            if is_state or not target.exists():
                # Hadoop's local file system keeps a checksum of its own beside each file; one
                # left over from another content would make the new one unreadable.
                target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
            if is_state:
                fresh.replace(target)
            else:
                # A link, unlike a rename, never replaces what another process has just put there.
                os.link(fresh, target)
        except FileExistsError:
            present = target.read_bytes()
            if present != content:
                raise Damaged(
                    f"{target} is there with {len(present)} bytes and differs from {source} with "
                    f"{len(content)} bytes; keep the location that goes with this log, or move "
                    "that file away if you know it to be wrong",
                    code="checkpoint_differs",
                ) from None
            return False
        except OSError as error:
            raise BadCall(
                f"{target} cannot be written: {error.strerror or error}; make that possible and "
                "run this again",
                code="bad_request",
            ) from error
        finally:
            fresh.unlink(missing_ok=True)
        _sync(target.parent)
        return True


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
