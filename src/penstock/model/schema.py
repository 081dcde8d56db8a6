"""The shape of a stream: one canonical Arrow schema, and how rows are brought into it.

Canonical means: every field nullable, no metadata, timestamps in microseconds with time zone UTC
or none, 32-bit offsets, dictionaries unwrapped, and only types that Spark has too. Two producers
with the same columns therefore always meet in the same bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import BadCall
from penstock.model.ddl import NESTING_MAX, UTC, list_of, map_of, parse_ddl, to_ddl, type_ddl

__all__ = [
    "added",
    "canonical",
    "check_added",
    "fit",
    "from_base64",
    "reshape",
    "same_shape",
    "schema_of",
    "to_base64",
    "to_ddl",
    "type_ddl",
]

COLUMNS_MAX = 4_096

_INSTEAD = (
    (kinds.is_uint8, "smallint"),
    (kinds.is_uint16, "int"),
    (kinds.is_uint32, "bigint"),
    (kinds.is_uint64, "decimal(20,0)"),
    (kinds.is_duration, "a bigint of microseconds"),
    (kinds.is_time, "a bigint of microseconds"),
    (kinds.is_interval, "a bigint of microseconds"),
    (kinds.is_decimal256, "decimal(38, scale)"),
    (kinds.is_null, "a column with a type, such as string"),
    (kinds.is_union, "a struct with one field per case"),
)
_KEPT = (
    kinds.is_boolean,
    kinds.is_signed_integer,
    kinds.is_float32,
    kinds.is_float64,
    kinds.is_string,
    kinds.is_binary,
    kinds.is_date32,
)


def schema_of(schema: str | pa.Schema) -> pa.Schema:
    """The canonical schema of a Spark DDL text or of any Arrow schema that has one."""
    return canonical(parse_ddl(schema) if isinstance(schema, str) else schema)


def canonical(schema: pa.Schema) -> pa.Schema:
    """The stream's form of `schema`; `bad_schema` names the column and type that has none."""
    if not 1 <= len(schema) <= COLUMNS_MAX:
        raise BadCall(
            f"a stream has 1 to {COLUMNS_MAX} columns, and this schema has {len(schema)}; "
            "give it a column or split it",
            code="bad_schema",
        )
    _refuse_repeats([field.name for field in schema], "the schema")
    return pa.schema([pa.field(field.name, _type(field.name, field.type)) for field in schema])


def _refuse_repeats(names: list[str], where: str) -> None:
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise BadCall(
            f"{where} names {', '.join(map(repr, repeated))} more than once; rename all but one",
            code="bad_schema",
        )
    if "" in names:
        raise BadCall(f"{where} has a column without a name; name it", code="bad_schema")


def _refuse_deep(path: str, depth: int) -> None:
    if depth > NESTING_MAX:
        raise BadCall(
            f"column {path.partition('.')[0]!r} is nested more than {NESTING_MAX} deep; make it "
            "flatter",
            code="bad_schema",
        )


def _type(path: str, kind: pa.DataType, depth: int = 1) -> pa.DataType:
    """The canonical form of one type; `path` is the column as the reader of an error knows it."""
    _refuse_deep(path, depth)
    if any(kept(kind) for kept in _KEPT):
        return kind
    if kinds.is_dictionary(kind):
        return _type(path, kind.value_type, depth + 1)
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else UTC)
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pa.string()
    if (
        kinds.is_large_binary(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    ):
        return pa.binary()
    if kinds.is_date64(kind):
        return pa.date32()
    if kinds.is_float16(kind):
        return pa.float32()
    if kinds.is_decimal(kind) and not kinds.is_decimal256(kind) and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return list_of(_type(f"{path}.element", kind.value_type, depth + 1))
    if kinds.is_map(kind):
        return map_of(
            _type(f"{path}.key", kind.key_type, depth + 1),
            _type(f"{path}.value", kind.item_type, depth + 1),
        )
    if kinds.is_struct(kind):
        _refuse_repeats([field.name for field in kind], f"column {path!r}")
        return pa.struct(
            [pa.field(f.name, _type(f"{path}.{f.name}", f.type, depth + 1)) for f in kind]
        )
    instead = next((word for is_kind, word in _INSTEAD if is_kind(kind)), "a type that Spark has")
    raise BadCall(
        f"column {path!r} has the type {kind}, which a stream cannot carry; use {instead}",
        code="bad_schema",
    )


def same_shape(left: pa.Schema, right: pa.Schema) -> bool:
    """Whether both have the same columns in the same order once made canonical."""
    try:
        return bool(canonical(left).equals(canonical(right)))
    except BadCall:
        return False


def added(schema: pa.Schema, columns: pa.Schema) -> pa.Schema:
    """The schema with more columns at its end."""
    return canonical(pa.schema([*schema, *columns]))


def check_added(old: pa.Schema, new: pa.Schema, stream: str) -> None:
    """Refuse a change of a stream's columns that is anything but new ones at the end."""
    changes = []
    for place, field in enumerate(old):
        if field.name not in new.names:
            changes.append(f"the column {field.name!r} would be dropped, with its values")
        elif new.field(field.name).type != field.type:
            changes.append(
                f"the column {field.name!r} is {type_ddl(field.type)} and would become "
                f"{type_ddl(new.field(field.name).type)}, which may not hold its values"
            )
        elif new.names[place] != field.name:
            changes.append(f"the column {field.name!r} would change its place")
    if changes:
        raise BadCall(
            f"the stream {stream!r} cannot be altered so: {'; '.join(changes)}; add columns at the "
            "end, or make another stream",
            code="would_lose_data",
            status=409,
        )


def reshape(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of an older or newer version of a schema in this one: columns that came later are null,
    those not known yet are left out."""
    columns = list(rows.columns[: len(schema)])
    columns += [pa.nulls(rows.num_rows, field.type) for field in list(schema)[len(columns) :]]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def fit(
    rows: pa.RecordBatch | pa.Table, schema: pa.Schema, first_version: pa.Schema | None = None
) -> pa.RecordBatch:
    """The rows as one record batch of exactly the canonical `schema`.

    Columns are matched by name, in any order; every column must be there and no other, but for
    those that `first_version` of the stream did not have, which become null. Only casts that lose
    nothing are made; `rows_do_not_fit` names the column and the value otherwise.
    """
    names = list(rows.schema.names)
    demanded = (first_version or schema).names
    missing = [name for name in demanded if name not in set(names)]
    extra = [name for name in names if name not in set(schema.names)]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if missing or extra or repeated:
        facts = [
            f"{word} {', '.join(map(repr, wrong))}"
            for word, wrong in (("lack", missing), ("have an unknown", extra), ("repeat", repeated))
            if wrong
        ]
        raise BadCall(
            f"the rows {' and '.join(facts)}; the stream's columns are {to_ddl(schema)}",
            code="rows_do_not_fit",
        )
    columns = [
        _cast(rows.column(names.index(field.name)), field)
        if field.name in names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array:
    try:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks)
        return column if column.type.equals(field.type) else column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise BadCall(
            f"column {field.name!r} of type {column.type} does not fit {type_ddl(field.type)}: "
            f"{_first_line(error)}",
            code="rows_do_not_fit",
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def to_base64(schema: pa.Schema) -> str:
    """The schema's IPC message, for JSON."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def from_base64(text: str) -> pa.Schema:
    """The canonical schema of a base64 IPC schema message."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (binascii.Error, ValueError, pa.ArrowException, OSError) as error:
        raise BadCall(
            f"the schema is not the base64 of an Arrow IPC schema message: {_first_line(error)}; "
            "send one, or send 'ddl' instead",
            code="bad_schema",
        ) from error
    return canonical(schema)
