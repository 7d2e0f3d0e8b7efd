"""What people type as JSON, as values of Avro.

A union is its value, a decimal a string or a number, bytes are text or ``{"base64":
...}``, times ISO 8601. A value of a union may also have the name of its type, as Avro's
own JSON has it: ``{"string": "a"}``. `kafkaio consume` prints the same, see
`kafkaio._cli.records.decoded`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from kafkaio.errors import SerializationError
from kafkaio.registry._avro_guard import explain
from kafkaio.registry._avro_schema import (
    RECORDS,
    AvroType,
    ParsedAvro,
    resolve,
    type_of,
)
from kafkaio.registry._serde import field_path

_FLOATS: Final = frozenset(("NaN", "Infinity", "-Infinity"))
#: Members of a union whose one type is meant if a value fits none.
_ONE_AND_NULL: Final = 2


def datum_of(parsed: ParsedAvro, tree: object) -> object:
    """Return what fastavro takes for a value that JSON read.

    Args:
        parsed: the schema.
        tree: the value; numbers with a point are Decimals.

    Raises:
        SerializationError: it does not fit the schema; ``field`` says where.
    """
    datum = _Converter(parsed.named).convert(parsed.schema, tree)
    fault = explain(parsed, datum)
    if fault is None:
        return datum
    path = field_path(fault.path)
    raise SerializationError(f"{path or 'the value'} {fault.reason}", field=path)


class _Converter:
    """Converts what JSON has no form for; what does not fit is left as it is."""

    def __init__(self, named: dict[str, AvroType]) -> None:
        self._named = named

    def convert(self, schema: AvroType, tree: Any) -> Any:
        """Return the value for a type."""
        if isinstance(schema, list):
            return self._union(schema, tree)
        schema = resolve(schema, self._named)
        if isinstance(schema, list):
            return self._union(schema, tree)
        kind = type_of(schema, self._named)
        if kind in RECORDS:
            return self._record(schema, tree)
        if kind == "array" and isinstance(tree, list):
            places = [(f"[{place}]", each) for place, each in enumerate(tree)]
            return [self._inside(schema["items"], *place) for place in places]
        if kind == "map" and isinstance(tree, dict):
            values = schema["values"]
            return {name: self._inside(values, name, it) for name, it in tree.items()}
        logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
        convert = _LOGICAL.get(logical) or _KINDS.get(kind)
        return tree if convert is None else _tried(convert, tree)

    def _record(self, schema: Mapping[str, Any], tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        types = {field["name"]: field["type"] for field in schema["fields"]}
        if unknown := next((name for name in tree if name not in types), ""):
            raise SerializationError(
                f"{unknown} is not a field of {schema['name']}", field=unknown
            )
        return {name: self._inside(types[name], name, it) for name, it in tree.items()}

    def _inside(self, schema: AvroType, place: str, tree: Any) -> Any:
        try:
            return self.convert(schema, tree)
        except SerializationError as error:
            dot = "" if error.field.startswith("[") else "."
            path = f"{place}{dot}{error.field}"
            text = str(error).replace(error.field, path, 1)
            raise SerializationError(text, field=path) from None

    def _union(self, members: list[AvroType], tree: Any) -> Any:
        faults = []
        for schema, value in self._candidates(members, tree):
            try:
                datum = self.convert(schema, value)
            except SerializationError as error:
                faults.append(error)
                continue
            part = ParsedAvro(schema, self._named, False, False, False)  # noqa: FBT003
            if explain(part, datum) is None:
                # fastavro finds the record of a union by its name.
                kind = resolve(schema, self._named)
                is_record = type_of(kind, self._named) in RECORDS
                return (kind["name"], datum) if is_record else datum
        if faults and len(members) <= _ONE_AND_NULL:
            raise faults[0]
        return tree

    def _candidates(
        self, members: list[AvroType], tree: Any
    ) -> list[tuple[AvroType, Any]]:
        found = [(schema, tree) for schema in members]
        if isinstance(tree, dict) and len(tree) == 1:
            ((name, value),) = tree.items()
            found += [(s, value) for s in members if name in self._names(s)]
        return found

    def _names(self, schema: AvroType) -> tuple[str, ...]:
        schema = resolve(schema, self._named)
        if isinstance(schema, str):
            return (schema,)
        name = schema.get("name", schema["type"])
        return (name, name.rpartition(".")[2])


def _tried(convert: Callable[[Any], Any], tree: Any) -> Any:
    """Convert a value, or leave it as it is: it is found not to fit afterwards."""
    try:
        return convert(tree)
    except (ValueError, TypeError, ArithmeticError):
        return tree


def _bytes(tree: Any) -> Any:
    match tree:
        case str():
            return tree.encode()
        case {"base64": str() as text, **rest} if not rest:
            return b64decode(text, validate=True)
    return tree


def _float(tree: Any) -> Any:
    is_number = isinstance(tree, Decimal) or tree in _FLOATS
    return float(tree) if is_number else tree


def _decimal(tree: Any) -> Any:
    return tree if isinstance(tree, bool) else Decimal(tree)


def _instant(tree: Any) -> Any:
    if not isinstance(tree, str):
        return tree
    found = datetime.fromisoformat(tree)
    # fastavro takes a time without a zone for one of this machine's.
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda tree: parse(tree) if isinstance(tree, str) else tree


_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bytes": _bytes,
    "fixed": _bytes,
    "float": _float,
    "double": _float,
}
_LOGICAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "decimal": _decimal,
    "uuid": _parsed(UUID),
    "date": _parsed(date.fromisoformat),
    "time-millis": _parsed(time.fromisoformat),
    "time-micros": _parsed(time.fromisoformat),
    "timestamp-millis": _instant,
    "timestamp-micros": _instant,
    "local-timestamp-millis": _parsed(datetime.fromisoformat),
    "local-timestamp-micros": _parsed(datetime.fromisoformat),
}
