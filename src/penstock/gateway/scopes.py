"""The routes of the gateway, and the scopes a token needs for each: one of those named is enough.

`append` is for producers, `read` for those who follow streams outside Spark, `query` for Spark
jobs, which read, write and commit, and `admin` for everything, which is why no route names it.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.gateway.protocol import Handler
from penstock.gateway.routes import (
    admission,
    batch_admission,
    consumers,
    files,
    maintenance,
    queries,
    records,
    rows_in,
    rows_out,
    streams,
)
from penstock.gateway.tokens import Scope


class Route(NamedTuple):
    """A method and a path, who may ask for it, and what answers."""

    method: str
    path: str
    scopes: tuple[Scope, ...] | None
    """None: anybody, without a token."""
    handler: Handler


_ANY: tuple[Scope, ...] = ("append", "read", "query")
_ADMIN: tuple[Scope, ...] = ()
_READ: tuple[Scope, ...] = ("read", "query")
_QUERY: tuple[Scope, ...] = ("query",)

ROUTES = (
    Route("GET", "/v1/health", None, maintenance.health),
    Route("GET", "/v1/server", _ANY, maintenance.server),
    Route("GET", "/v1/streams", _ANY, streams.list_streams),
    Route("GET", "/v1/streams/{stream}", _ANY, streams.get_stream),
    Route("PUT", "/v1/streams/{stream}", _QUERY, streams.put_stream),
    Route("PATCH", "/v1/streams/{stream}", _ADMIN, streams.alter_stream),
    Route("DELETE", "/v1/streams/{stream}", _ADMIN, streams.delete_stream),
    Route("POST", "/v1/streams/{stream}/trim", _ADMIN, streams.trim_stream),
    Route("POST", "/v1/streams/{stream}/rows", ("append",), rows_in.append_rows),
    Route("GET", "/v1/streams/{stream}/rows", _READ, rows_out.fetch_rows),
    Route("GET", "/v1/streams/{stream}/position", _READ, streams.find_position),
    Route("POST", "/v1/streams/{stream}/entries", _QUERY, rows_in.append_entries),
    Route("GET", "/v1/queries", _READ, queries.list_queries),
    Route("GET", "/v1/queries/{query}", _READ, queries.get_query),
    Route("POST", "/v1/queries/{query}/instances", _QUERY, queries.take_over),
    Route("POST", "/v1/queries/{query}/markers", _QUERY, queries.mark),
    Route("GET", "/v1/queries/{query}/markers", _READ, queries.list_markers),
    Route("POST", "/v1/queries/{query}/files", _QUERY, files.append_files),
    Route("GET", "/v1/queries/{query}/files/{lsn}", _QUERY, files.get_file),
    Route("GET", "/v1/queries/{query}/checkpoint", _QUERY, files.get_checkpoint),
    Route("GET", "/v1/queries/{query}/state", _QUERY, files.get_state),
    Route("POST", "/v1/queries/{query}/reset", _ADMIN, queries.reset_query),
    Route("DELETE", "/v1/queries/{query}", _ADMIN, queries.delete_query),
    Route("GET", "/v1/consumers", _READ, consumers.list_consumers),
    Route("PUT", "/v1/consumers/{group}/streams/{stream}", ("read",), consumers.register),
    Route("POST", "/v1/consumers/{group}/positions", ("read",), consumers.move),
    Route("DELETE", "/v1/consumers/{group}", _ADMIN, consumers.forget),
    Route("POST", "/v1/collect", _ADMIN, maintenance.collect),
    Route("GET", "/v1/backup", _ADMIN, maintenance.back_up),
    Route("POST", "/v1/records", ("append",), records.append_record),
    Route("GET", "/v1/records", ("read",), records.list_records),
    Route("POST", "/v1/records/trim", _ADMIN, records.trim_records),
    Route("POST", "/v1/admission", _READ, admission.admit),
    Route("POST", "/v1/admission/batch", _READ, batch_admission.admit_batch),
    Route("GET", "/v1/queries/{query}/admission", _READ, batch_admission.explain_query),
    Route("PUT", "/v1/queries/{query}/deadline", _ADMIN, batch_admission.set_deadline),
    Route("GET", "/v1/metrics", _READ, batch_admission.metrics),
)
SCOPES_OF = {route.handler: route.scopes for route in ROUTES}
