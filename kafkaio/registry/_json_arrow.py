"""JSON as Arrow columns: whole batches of values.

Where a schema has objects, arrays, strings, numbers and booleans alone, pyarrow parses
the batch. What it refuses, and all other schemas, is parsed value by value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from io import BytesIO
from typing import TYPE_CHECKING, Any

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._avro_arrow import pyarrow
from kafkaio.registry._columns import of_batch, to_array
from kafkaio.registry._schema import Schema
from kafkaio.serde import DeserializationContext, Json

if TYPE_CHECKING:
    import pyarrow as pa

#: Makes what pyarrow takes of what JSON read, unless that is null, and checks it.
Convert = Callable[[Any], Any]

_MOST_LEVELS = 100
_PARSE = Json()
_CONTEXT = DeserializationContext("", (), is_key=False)


class JsonColumns:
    """The type in Arrow of a JSON schema, and what makes its values.

    Args:
        schema: the schema.
        references: the schemas that it refers to, by the names it uses.

    Attributes:
        type: the type in Arrow.

    Raises:
        ConfigurationError: the schema refers to itself, or pyarrow is not installed.
        SchemaError: it refers to what is not there.
    """

    __slots__ = ("_convert", "_documents", "_is_plain", "_name", "type")

    def __init__(self, schema: Schema, references: Mapping[str, Schema]) -> None:
        self._documents = {
            "": json.loads(schema.text),
            **{name: json.loads(each.text) for name, each in references.items()},
        }
        # Whether pyarrow reads every type of it as JSON has it.
        self._is_plain = True
        self._name = "the schema"
        found = self._column(self._documents[""], "", 0)
        self.type: pa.DataType = found[0]
        self._convert: Convert = found[1]

    # -- values ------------------------------------------------------------------------

    def array(self, payloads: Sequence[bytes | None]) -> pa.Array:
        """Return values as an array.

        Raises:
            SerializationError: one is not JSON, or does not fit the type.
        """
        if self._is_plain and pyarrow().types.is_struct(self.type):
            parsed = self._parsed_by_arrow(payloads)
            if parsed is not None:
                return parsed
        rows: list[Any] = []
        for place, payload in enumerate(payloads):
            if payload is None:
                rows.append(None)
                continue
            try:
                rows.append(self._convert(_PARSE.deserialize(payload, _CONTEXT)))
            except SerializationError as error:
                raise of_batch(place, error) from error
            except (ValueError, TypeError, OverflowError) as error:
                wrong = SerializationError(f"does not fit its schema: {error}")
                raise of_batch(place, wrong) from error
        return to_array(rows, self.type, self._name)

    def _parsed_by_arrow(self, payloads: Sequence[bytes | None]) -> Any:
        """Return the array as pyarrow parses it; None if it does not, or not surely.

        Each payload is a line that begins and ends as an object does. Where there are
        as many objects as lines, each line is one.
        """
        arrow = pyarrow()
        lines = [each for each in payloads if each is not None]
        if not lines or not all(
            each[:1] == b"{" and each[-1:] == b"}" for each in lines
        ):
            return None
        text = b"\n".join(lines)
        if text.count(b"\n") != len(lines) - 1:
            return None
        from pyarrow import json as parser

        try:
            text.decode()  # which pyarrow does not check
            table = parser.read_json(
                BytesIO(text),
                parser.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parser.ParseOptions(
                    explicit_schema=arrow.schema(list(self.type)),
                    unexpected_field_behavior="ignore",
                ),
            )
        except (arrow.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != len(lines):
            return None
        columns = [column.combine_chunks() for column in table.columns]
        found = arrow.StructArray.from_arrays(columns, fields=list(self.type))
        if len(lines) == len(payloads):
            return found
        places = iter(range(len(lines)))
        take = [None if each is None else next(places) for each in payloads]
        return found.take(arrow.array(take, arrow.int64()))

    # -- types -------------------------------------------------------------------------

    def _column(self, schema: Any, document: str, depth: int) -> tuple[Any, Convert]:
        if depth > _MOST_LEVELS:
            raise ConfigurationError(
                "the schema refers to itself, or nests too deeply: Arrow has no type "
                "for that"
            )
        if not isinstance(schema, dict):
            return self._text()
        if "$ref" in schema:
            target, place = self._resolve(schema["$ref"], document)
            return self._column(target, place, depth + 1)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list):
            others = [each for each in branches if not _is_null(each)]
            if len(others) == 1:
                return self._column(others[0], document, depth + 1)
            return self._text()
        kind = _kind_of(schema)
        if kind == "object":
            return self._object(schema, document, depth)
        if kind == "array" and isinstance(schema.get("items"), dict):
            return self._array(schema["items"], document, depth)
        return self._scalar(schema, kind)

    def _object(self, schema: Any, document: str, depth: int) -> tuple[Any, Convert]:
        arrow = pyarrow()
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            columns = {
                name: self._column(each, document, depth + 1)
                for name, each in properties.items()
            }
            kind = arrow.struct([(name, each) for name, (each, _) in columns.items()])
            return kind, _of_object({name: each for name, (_, each) in columns.items()})
        values = schema.get("additionalProperties")
        if not isinstance(values, dict):
            return self._text()
        self._is_plain = False
        item, convert = self._column(values, document, depth + 1)

        def convert_map(value: Any) -> Any:
            members = _typed(value, dict).items()
            return {name: _or_none(convert, each) for name, each in members}

        return arrow.map_(arrow.string(), item), convert_map

    def _array(self, items: Any, document: str, depth: int) -> tuple[Any, Convert]:
        item, convert = self._column(items, document, depth + 1)

        def convert_array(value: Any) -> Any:
            return [_or_none(convert, each) for each in _typed(value, list)]

        return pyarrow().list_(item), convert_array

    def _scalar(self, schema: Any, kind: Any) -> tuple[Any, Convert]:
        arrow = pyarrow()
        symbols = schema.get("enum")
        if kind == "string" and schema.get("format") in _FORMATS:
            self._is_plain = False
            make, parse = _FORMATS[schema["format"]]
            return make(arrow), lambda value: parse(_typed(value, str))
        if kind == "string" or (
            isinstance(symbols, list) and all(isinstance(each, str) for each in symbols)
        ):
            return arrow.string(), lambda value: _typed(value, str)
        if kind == "integer":
            return arrow.int64(), _integer
        if kind == "number":
            return arrow.float64(), _number
        if kind == "boolean":
            return arrow.bool_(), lambda value: _typed(value, bool)
        return self._text()

    def _text(self) -> tuple[Any, Convert]:
        """Return a column for what may be anything: strings, the rest as JSON."""
        self._is_plain = False
        return pyarrow().string(), _as_text

    def _resolve(self, reference: object, document: str) -> tuple[Any, str]:
        name, _, path = str(reference).partition("#")
        place = name or document
        found: Any = self._documents.get(place)
        for part in filter(None, path.split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict):
                found = found.get(key)
            else:
                found = None
        if found is None:
            raise SchemaError(
                "",
                f"the JSON schema refers to {reference!r}, which is neither in it nor "
                "among its references",
            )
        return found, place


def _kind_of(schema: Mapping[str, Any]) -> Any:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        return others[0] if len(others) == 1 else None
    return "object" if kinds is None and "properties" in schema else kinds


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


# -- what pyarrow would take, and cut --------------------------------------------------


def _or_none(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _of_object(converts: Mapping[str, Convert]) -> Convert:
    def convert_object(value: Any) -> Any:
        members = _typed(value, dict)
        return {
            name: _or_none(convert, members.get(name))
            for name, convert in converts.items()
        }

    return convert_object


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} is expected, not {type(value).__name__}")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # an integer, for JSON Schema
    if isinstance(value, bool):
        raise TypeError("int is expected, not bool")
    number: int = _typed(value, int)
    return number


def _number(value: Any) -> float:
    return float(value) if isinstance(value, float) else float(_integer(value))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_FORMATS: Mapping[str, tuple[Callable[[Any], Any], Convert]] = {
    "date-time": (lambda arrow: arrow.timestamp("us", "UTC"), datetime.fromisoformat),
    "date": (lambda arrow: arrow.date32(), date.fromisoformat),
    "time": (lambda arrow: arrow.time64("us"), time.fromisoformat),
}
