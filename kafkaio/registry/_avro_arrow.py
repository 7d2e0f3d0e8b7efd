"""Avro as Arrow columns: whole batches of values.

Times, dates and UUIDs stay the numbers and strings that they are in Avro, since Arrow
has them as such, too: no Python object is made of them in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kafkaio.errors import ConfigurationError
from kafkaio.registry._avro_schema import (
    RECORDS,
    AvroType,
    ParsedAvro,
    resolve,
    type_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Decodes what fastavro read into what pyarrow takes; None where both are the same.
Convert = Callable[[Any], Any]

#: Logical types that pyarrow takes as fastavro reads them without the name. Of them
#: the name of a UUID alone says nothing about what the bytes mean.
PLAIN = frozenset(
    (
        *("date", "time-millis", "time-micros", "uuid"),
        *("timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    )
)
UUIDS = frozenset(("uuid",))
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_MOST_DIGITS = {128: 38, 256: 76}


def without_logical_types(schema: AvroType, names: frozenset[str] = PLAIN) -> AvroType:
    """Return the JSON of a schema without some of its logical types."""
    if isinstance(schema, list):
        return [without_logical_types(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: without_logical_types(each, names) for name, each in schema.items()}
    if "default" in schema:
        made["default"] = schema["default"]
    if schema.get("logicalType") in names:
        del made["logicalType"]
    return made


class AvroColumns:
    """The type in Arrow of a schema, and what makes its values.

    Args:
        schema: the JSON of the schema, with its logical types.
        parsed: the schema, parsed.

    Attributes:
        type: the type in Arrow.
        convert: makes what pyarrow takes of what fastavro read by the schema
            `without_logical_types`; None if it is the same.

    Raises:
        ConfigurationError: the schema has a cycle, or pyarrow is not installed.
    """

    __slots__ = ("_named", "convert", "type")

    def __init__(self, parsed: ParsedAvro) -> None:
        if parsed.has_cycle:
            raise ConfigurationError(
                "the schema refers to itself, and Arrow has no type for that"
            )
        self._named: Mapping[str, AvroType] = parsed.named
        found = self._column(parsed.schema)
        self.type: pa.DataType = found[0]
        self.convert: Convert | None = found[1]

    def _column(self, schema: AvroType) -> tuple[Any, Convert | None]:
        arrow = pyarrow()
        if isinstance(schema, list):
            return self._union(schema)
        schema = resolve(schema, self._named)
        kind = type_of(schema, self._named)
        if kind in RECORDS:
            return self._record(schema)
        if kind == "array":
            item, convert = self._column(schema["items"])
            if convert is None:
                return arrow.list_(item), None
            each = convert
            return arrow.list_(item), lambda value: [each(one) for one in value]
        if kind == "map":
            item, convert = self._column(schema["values"])
            made = arrow.map_(arrow.string(), item)
            if convert is None:
                return made, None
            each = convert
            return made, lambda value: {key: each(one) for key, one in value.items()}
        details = schema if isinstance(schema, dict) else {}
        return _scalar(kind, details)

    def _record(self, schema: AvroType) -> tuple[Any, Convert | None]:
        arrow = pyarrow()
        fields, converts = [], {}
        for field in schema["fields"]:
            kind, convert = self._column(field["type"])
            name = field["name"]
            fields.append(arrow.field(name, kind, nullable=self._has_null(field)))
            if convert is not None:
                converts[name] = convert
        if not converts:
            return arrow.struct(fields), None

        def convert_record(value: Any) -> Any:
            for name, convert in converts.items():
                value[name] = convert(value[name])
            return value

        return arrow.struct(fields), convert_record

    def _has_null(self, field: AvroType) -> bool:
        kind = field["type"]
        if isinstance(kind, list):
            return any(type_of(each, self._named) == "null" for each in kind)
        return type_of(kind, self._named) == "null"

    def _union(self, schema: list[AvroType]) -> tuple[Any, Convert | None]:
        """Return a nullable column, or a struct with a field for each branch.

        As Spark has them: the fields are named member0, member1, ..., and one of them
        is not null; two widths of a number are the wider one.
        """
        arrow = pyarrow()
        branches = [each for each in schema if type_of(each, self._named) != "null"]
        if not branches:
            return arrow.null(), None
        kinds = [type_of(each, self._named) for each in branches]
        wider = {
            frozenset(("int", "long")): "long",
            frozenset(("float", "double")): "double",
        }
        if len(branches) == 2 and frozenset(kinds) in wider:
            return self._column(wider[frozenset(kinds)])
        if len(branches) == 1:
            kind, convert = self._column(branches[0])
            if convert is None:
                return kind, None
            inner = convert
            return kind, lambda value: None if value is None else inner(value)
        columns = [self._column(each) for each in branches]
        fields = [(f"member{place}", kind) for place, (kind, _) in enumerate(columns)]
        tests = [
            _test_of(kind, self._named, each)
            for kind, each in zip(kinds, branches, strict=True)
        ]
        converts = [convert for _, convert in columns]

        def convert_union(value: Any) -> Any:
            if value is None:
                return None
            name, inner = value if type(value) is tuple else (None, value)
            for place, test in enumerate(tests):
                if test(name, inner):
                    convert = converts[place]
                    return {f"member{place}": convert(inner) if convert else inner}
            return {}

        return arrow.struct(fields), convert_union


def _test_of(
    kind: str, named: Mapping[str, AvroType], schema: AvroType
) -> Callable[[str | None, Any], bool]:
    """Return what tells whether a value is of one branch of a union."""
    if kind in RECORDS:
        own = resolve(schema, named)["name"].rpartition(".")[2]

        def is_record(name: str | None, value: Any) -> bool:
            if name is None:
                return isinstance(value, dict)
            return bool(name.rpartition(".")[2] == own)

        return is_record
    if kind == "enum":
        symbols = frozenset(resolve(schema, named)["symbols"])
        return lambda _, value: isinstance(value, str) and value in symbols
    expected: Any = {
        "boolean": bool,
        "float": float,
        "double": float,
        "string": str,
        "array": list,
        "map": dict,
        "int": int,
        "long": int,
    }.get(kind, (bytes, Decimal))
    return lambda name, value: (
        name is None
        and (
            isinstance(value, expected)
            and (expected is bool or not isinstance(value, bool))
        )
    )


def _scalar(kind: str, schema: Mapping[str, Any]) -> tuple[Any, Convert | None]:
    arrow = pyarrow()
    logical = schema.get("logicalType", "")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(schema)
    if kind in ("int", "long") and logical in PLAIN:
        return _time(logical), None
    if kind == "fixed":
        return arrow.binary(schema["size"]), None
    makes = {
        "null": arrow.null,
        "boolean": arrow.bool_,
        "int": arrow.int32,
        "long": arrow.int64,
        "float": arrow.float32,
        "double": arrow.float64,
        "bytes": arrow.binary,
        "string": arrow.string,
        "enum": arrow.string,
    }
    return makes[kind](), None


def _decimal(schema: Mapping[str, Any]) -> tuple[Any, Convert | None]:
    arrow = pyarrow()
    precision, scale = schema["precision"], schema.get("scale", 0)
    if precision <= _MOST_DIGITS[128]:
        return arrow.decimal128(precision, scale), None
    if precision <= _MOST_DIGITS[256]:
        return arrow.decimal256(precision, scale), None
    # More digits than Arrow has: as text, so that none is lost.
    return arrow.string(), str


def _time(logical: str) -> Any:
    arrow = pyarrow()
    if logical == "date":
        return arrow.date32()
    unit = _UNITS[logical.rpartition("-")[2]]
    if logical.startswith("time-"):
        return arrow.time32(unit) if unit == "ms" else arrow.time64(unit)
    return arrow.timestamp(unit, None if logical.startswith("local") else "UTC")


def pyarrow() -> Any:
    """Import pyarrow.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import pyarrow as module
    except ImportError as error:
        raise ConfigurationError(
            "Arrow columns need pyarrow; install it with: pip install 'kafkaio[arrow]'"
        ) from error
    return module
