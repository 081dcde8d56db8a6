"""Checkpoint files of a request: their names and sizes, given as query parameters."""

from __future__ import annotations

from aiohttp import web

from penstock.gateway.parse import bad_request, is_number
from penstock.model.ids import FilePath, file_path


def file_paths(request: web.Request, files_max: int) -> list[FilePath]:
    """The names of the files."""
    path, paths = request.query.get("path"), request.query.get("paths")
    text = path if path is not None else paths
    if text is None or (path is not None and paths is not None):
        raise bad_request("give path=… for one file or paths=…,… for several, one of them")
    parts = text.split(",") if path is None else [text]
    if len(parts) > files_max:
        raise bad_request(
            f"the request has {len(parts)} files, and may have {files_max}; send it in parts"
        )
    return [file_path(part) for part in parts]


def file_sizes(request: web.Request, count: int) -> list[int] | None:
    """Sizes that divide the body; None for one file that is the whole body."""
    is_whole = "sizes" not in request.query and count == 1
    return None if is_whole else need_sizes(request, count)


def need_sizes(request: web.Request, count: int) -> list[int]:
    """The size of each file."""
    text = request.query.get("sizes")
    parts = text.split(",") if text else []
    if not all(is_number(part) for part in parts):
        raise bad_request(f"sizes is {text!r}, and must be numbers of bytes such as 120,0,45")
    if len(parts) != count:
        raise bad_request(
            f"the request has {count} paths and {len(parts)} sizes; give a size for each path"
        )
    return [int(part) for part in parts]


def divided(body: bytes, files_bytes: int) -> tuple[bytes, bytes]:
    """A body of rows with files behind them: the rows, and the files."""
    if files_bytes > len(body):
        raise bad_request(
            f"the sizes add up to {files_bytes} bytes and the body has {len(body)}; send the rows, "
            "then the files one after the other"
        )
    end = len(body) - files_bytes
    return (body, b"") if not files_bytes else (body[:end], body[end:])
