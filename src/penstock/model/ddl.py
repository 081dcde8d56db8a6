"""Spark's way of writing a schema down, to Arrow and back.

`parse_ddl("auction bigint, tags array<string>")` and `to_ddl(schema)` are inverse on canonical
schemas. `not null` and `comment '…'` are read and dropped, because every column of a stream is
nullable and carries no metadata.
"""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import BadCall

UTC = "UTC"
NESTING_MAX = 32
"""How deep the types of a column may be nested: whoever reads rows goes down as far."""
SHOWN_MAX = 1_000

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", UTC),
    "timestamp_ltz": pa.timestamp("us", UTC),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", UTC): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z_0-9]+)|('(?:[^'\\]|\\.|'')*')|([<>(),:]))")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def list_of(element: pa.DataType) -> pa.DataType:
    """A list whose inner field is named as Spark names it, so that shapes compare equal."""
    return pa.list_(pa.field("element", element))


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """A map with Arrow's usual inner names and the keys not nullable, as Arrow demands."""
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def parse_ddl(text: str) -> pa.Schema:
    """The canonical Arrow schema of a Spark DDL text; `bad_schema` says where it went wrong."""
    reader = _Reader(text)
    fields = [reader.column()]
    while reader.take_if(","):
        fields.append(reader.column())
    reader.expect_end()
    return pa.schema(fields)


def to_ddl(schema: pa.Schema) -> str:
    """The DDL of a canonical schema."""
    return ", ".join(f"{_quoted(field.name)} {type_ddl(field.type)}" for field in schema)


def type_ddl(kind: pa.DataType) -> str:
    """The DDL of one canonical type; a type Spark has no word for gets Arrow's own name."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{type_ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_ddl(kind.key_type)},{type_ddl(kind.item_type)}>"
    if pa.types.is_struct(kind):
        inner = ",".join(f"{_quoted(field.name)}:{type_ddl(field.type)}" for field in kind)
        return f"struct<{inner}>"
    return _NAMES.get(kind, str(kind))


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    """Tokens of one DDL text, read once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            token = _TOKEN.match(text, at)
            if token is None:
                raise self._error(f"{text[at:].strip()[:20]!r} cannot be read")
            self._tokens.append(token.group().strip())
            at = token.end()
        self._next = 0
        self._nesting = 0

    def _error(self, fault: str) -> BadCall:
        shown = self._text if len(self._text) <= SHOWN_MAX else f"{self._text[:SHOWN_MAX]}…"
        return BadCall(
            f"{shown!r} is not a schema: {fault}; write it as in Spark, for example "
            "'auction bigint, at timestamp, tags array<string>'",
            code="bad_schema",
        )

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self, expected: str) -> str:
        token = self._peek()
        if not token:
            raise self._error(f"it ends where {expected} should be")
        self._next += 1
        return token

    def take_if(self, token: str) -> bool:
        if self._peek().lower() != token:
            return False
        self._next += 1
        return True

    def _expect(self, token: str) -> None:
        taken = self._take(repr(token))
        if taken != token:
            raise self._error(f"{token!r} should be where {taken!r} is")

    def expect_end(self) -> None:
        if self._peek():
            raise self._error(f"{self._peek()!r} comes after the last column")

    def column(self) -> pa.Field:
        token = self._take("a column name")
        if token.startswith("`"):
            name = token[1:-1].replace("``", "`")
        elif re.fullmatch(r"\w+", token):
            name = token
        else:
            raise self._error(f"{token!r} is not a column name")
        self.take_if(":")
        kind = self._type()
        if self.take_if("not") and not self.take_if("null"):
            raise self._error(f"'null' should follow 'not' after column {name!r}")
        if self.take_if("comment"):
            self._take("a comment")
        return pa.field(name, kind)

    def _type(self) -> pa.DataType:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise self._error(f"its types are nested more than {NESTING_MAX} deep")
        kind = self._type_within()
        self._nesting -= 1
        return kind

    def _type_within(self) -> pa.DataType:
        word = self._take("a type").lower()
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word in ("varchar", "char"):
            if self.take_if("("):
                self._number()
                self._expect(")")
            return pa.string()
        if word == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return list_of(element)
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return map_of(key, value)
        if word == "struct":
            return self._struct()
        raise self._error(f"{word!r} is not a type; use one of {', '.join(sorted(_SIMPLE))}, "
                          "decimal, varchar, array, map, struct")  # fmt: skip

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields = [self.column()]
        while self.take_if(","):
            fields.append(self.column())
        self._expect(">")
        return pa.struct(fields)

    def _number(self) -> int:
        token = self._take("a number")
        if not token.isdigit():
            raise self._error(f"a number should be where {token!r} is")
        return int(token)

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self.take_if("("):
            precision = self._number()
            if self.take_if(","):
                scale = self._number()
            self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._error(f"decimal({precision},{scale}) is outside decimal(38,38)")
        return pa.decimal128(precision, scale)
