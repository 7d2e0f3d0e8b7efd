"""Checks of data and values that fastavro does not make.

- It writes some values that do not fit: a fraction for an integer (cut), a number over
  32 bits for an ``int``, any object for a boolean. `compile_check` makes a function
  that finds what looks right at once; what it does not accept is left to `explain`,
  which walks value and schema together and says where something does not fit.
- It reads and writes by recursion in C, and takes the count of an array at its word.
  `check_data` and `check_value` walk what could be too deep, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias
from uuid import UUID

from kafkaio.errors import SerializationError
from kafkaio.registry._avro_schema import (
    MOST_LEVELS,
    RECORDS,
    AvroType,
    ParsedAvro,
    resolve,
    simple_name,
    type_of,
)
from kafkaio.registry._classes import Fault

#: Returns whether a value surely fits; one that does not may fit all the same.
Check: TypeAlias = Callable[[Any], bool]

#: Items of an array that take no bytes, in one value.
_MOST_EMPTY_ITEMS = 65_536
#: Bytes of a decimal. To convert them takes a time that grows with their square: 20 ms
#: for 8 KiB, minutes for a megabyte.
MOST_DECIMAL = 1024
_INT = (-(2**31), 2**31 - 1)
_LONG = (-(2**63), 2**63 - 1)
_LARGEST_FLOAT = 3.4028235677973366e38
_LOGICAL_TYPES: dict[str, type] = {
    "date": date,
    "time-millis": time,
    "time-micros": time,
    "timestamp-millis": datetime,
    "timestamp-micros": datetime,
    "local-timestamp-millis": datetime,
    "local-timestamp-micros": datetime,
}


# -- values that look right ------------------------------------------------------------


def compile_check(parsed: ParsedAvro) -> Check | None:
    """Return a function that finds values that surely fit; None if none is needed."""
    compiler = _CheckCompiler(parsed.named)
    name = compiler.function(parsed.schema)
    if name is None:
        return None
    text = "\n".join(compiler.lines)
    # Names of fields are put in as literals, so the text is code of ours alone.
    exec(compile(text, "<check of a value of Avro>", "exec"), compiler.names)  # noqa: S102
    check: Check = compiler.names[name]
    return check


class _CheckCompiler:
    """Writes a function for each type whose values need a check."""

    def __init__(self, named: Mapping[str, AvroType]) -> None:
        self._named = named
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"UUID": UUID} | {
            kind.__name__: kind for kind in _LOGICAL_TYPES.values()
        }
        # The function of each record; None where nothing needs a check.
        self._functions: dict[str, str | None] = {}
        self._count = 0

    def function(self, schema: AvroType) -> str | None:
        """Return the name of the function that checks values of a type, if any."""
        schema = resolve(schema, self._named)
        kind = type_of(schema, self._named)
        if kind in RECORDS:
            full_name = schema["name"]
            if full_name not in self._functions:
                # Set before its fields are looked at: they may refer to it.
                name = self._functions[full_name] = self._name()
                body = self._record(schema)
                if not body and not self._is_recursive(schema):
                    self._functions[full_name] = None
                else:
                    self._write(name, [*body, "return True"])
            return self._functions[full_name]
        body = self._value(schema, "v")
        if not body:
            return None
        name = self._name()
        self._write(name, [*body, "return True"])
        return name

    def _is_recursive(self, schema: AvroType) -> bool:
        """Whether a function that was written may call that of this record."""
        name = self._functions[schema["name"]]
        return any(f"{name}(" in line for line in self.lines)

    def _name(self) -> str:
        self._count += 1
        return f"check_{self._count}"

    def _write(self, name: str, body: list[str]) -> None:
        self.lines += [f"def {name}(v):", *(f"    {line}" for line in body)]

    def _record(self, schema: AvroType) -> list[str]:
        body = []
        for field in schema["fields"]:
            checks = self._value(field["type"], "e")
            if checks:
                key = repr(field["name"])
                if "default" in field:
                    # Left out it is written as its default.
                    inner = [f"    {line}" for line in checks]
                    body += [f"if {key} in v:", f"    e = v[{key}]", *inner]
                else:
                    body += [f"e = v[{key}]", *checks]
        return body

    def _value(self, schema: AvroType, name: str) -> list[str]:
        """Return lines that return False unless the value of a name surely fits."""
        if isinstance(schema, list):
            return self._nullable(schema, name)
        schema = resolve(schema, self._named)
        kind = type_of(schema, self._named)
        if kind in RECORDS:
            function = self.function(schema)
            return [f"if not {function}({name}): return False"] if function else []
        if kind in ("array", "map"):
            return self._items(schema, kind, name)
        condition = self._condition(schema, kind, name)
        return [f"if not ({condition}): return False"] if condition else []

    def _nullable(self, schema: list[AvroType], name: str) -> list[str]:
        """Look into a union of null and one type; fastavro checks those of several."""
        kinds = [type_of(each, self._named) for each in schema]
        if len(schema) != 2 or "null" not in kinds:
            return []
        lines = self._value(schema[1 - kinds.index("null")], name)
        if not lines:
            return []
        return [f"if {name} is not None:", *(f"    {line}" for line in lines)]

    def _items(self, schema: AvroType, kind: str, name: str) -> list[str]:
        expected = "list, tuple" if kind == "array" else "dict,"
        lines = [f"if type({name}) not in ({expected}): return False"]
        inner = f"{name}_"
        checks = self._value(schema["items" if kind == "array" else "values"], inner)
        if checks:
            values = name if kind == "array" else f"{name}.values()"
            lines += [f"for {inner} in {values}:", *(f"    {each}" for each in checks)]
        return lines

    def _condition(self, schema: AvroType, kind: str, name: str) -> str:
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if kind in ("int", "long"):
            if logical in _LOGICAL_TYPES:
                expected = _LOGICAL_TYPES[logical].__name__
                if logical.startswith("timestamp-"):
                    return f"type({name}) is datetime and {name}.tzinfo is not None"
                return f"type({name}) in (int, {expected})"
            integer = f"type({name}) is int"
            # fastavro checks those of 64 bits itself.
            return integer if kind == "long" else f"{integer} and {_fits(name)}"
        if kind == "boolean":
            return f"{name} is True or {name} is False"
        if kind == "float":
            largest = _LARGEST_FLOAT
            return f"type({name}) in (float, int) and -{largest} < {name} < {largest}"
        if kind == "double":
            return f"type({name}) in (float, int)"
        if kind == "null":
            return f"{name} is None"
        if kind == "string" and logical == "uuid":
            return f"type({name}) is UUID"
        # fastavro checks the others, and those of unions, before it writes them.
        return ""


def _fits(name: str) -> str:
    return f"{_INT[0]} <= {name} <= {_INT[1]}"


# -- values that do not fit ------------------------------------------------------------


def explain(parsed: ParsedAvro, value: Any) -> Fault | None:
    """Return where a value, as fastavro takes it, does not fit; None if it does."""
    try:
        return _explain(parsed.schema, value, parsed.named, 0)
    except RecursionError:
        return Fault((), "is nested too deeply")


def _explain(
    schema: AvroType, value: Any, named: Mapping[str, AvroType], depth: int
) -> Fault | None:
    if depth > MOST_LEVELS:
        return Fault((), f"is nested more than {MOST_LEVELS} levels deep")
    if isinstance(schema, list):
        return _explain_union(schema, value, named, depth)
    schema = resolve(schema, named)
    kind = type_of(schema, named)
    if kind in RECORDS:
        return _explain_record(schema, value, named, depth)
    if kind == "array":
        if not isinstance(value, Sequence | Set) or isinstance(value, str | bytes):
            return _wrong("a list", value)
        places: Iterable[tuple[str | int, Any]] = enumerate(value)
        return _explain_each(schema["items"], places, named, depth)
    if kind == "map":
        if not isinstance(value, Mapping):
            return _wrong("a dict", value)
        for key in value:
            if not isinstance(key, str):
                return Fault((), f"has a key of the type {type(key).__name__}, not str")
        return _explain_each(schema["values"], value.items(), named, depth)
    details = schema if isinstance(schema, dict) else {}
    return _explain_scalar(kind, details, value)


def _explain_each(
    schema: AvroType,
    places: Iterable[tuple[str | int, Any]],
    named: Mapping[str, AvroType],
    depth: int,
) -> Fault | None:
    for place, value in places:
        fault = _explain(schema, value, named, depth + 1)
        if fault is not None:
            return Fault((place, *fault.path), fault.reason)
    return None


def _explain_record(
    schema: AvroType, value: Any, named: Mapping[str, AvroType], depth: int
) -> Fault | None:
    if not isinstance(value, Mapping):
        return _wrong(f"a dict for {simple_name(schema['name'])}", value)
    for field in schema["fields"]:
        name = field["name"]
        if name not in value and "default" in field:
            continue
        fault = _explain(field["type"], value.get(name), named, depth + 1)
        if fault is not None:
            reason = fault.reason if name in value else "is missing"
            return Fault((name, *fault.path), reason)
    return None


def _explain_union(
    schema: list[AvroType], value: Any, named: Mapping[str, AvroType], depth: int
) -> Fault | None:
    if isinstance(value, tuple) and len(value) == 2:
        name, value = value
        schema = [each for each in schema if _is_named(each, name, named)]
        if not schema:
            return Fault((), f"is named {name!r}, which the union does not have")
    faults = [_explain(each, value, named, depth) for each in schema]
    if any(fault is None for fault in faults):
        return None
    kinds = [type_of(each, named) for each in schema]
    # What a record or a list has inside says more than that it is not null.
    inner = [fault for fault in faults if fault is not None and fault.path]
    if inner:
        return inner[0]
    others = [
        fault
        for fault, kind in zip(faults, kinds, strict=True)
        if fault is not None and kind != "null"
    ]
    if len(others) == 1:
        return others[0]
    return _wrong(f"one of {', '.join(kinds)}", value)


def _is_named(schema: AvroType, name: object, named: Mapping[str, AvroType]) -> bool:
    schema = resolve(schema, named)
    return name in (
        (schema,) if isinstance(schema, str) else (schema.get("name"), schema["type"])
    )


def _explain_scalar(kind: str, schema: Mapping[str, Any], value: Any) -> Fault | None:
    logical = schema.get("logicalType", "")
    if kind in ("int", "long"):
        return _explain_integer(kind, logical, value)
    if kind in ("float", "double"):
        return _explain_number(kind, value)
    if kind == "null":
        return None if value is None else _wrong("None", value)
    if kind == "boolean":
        return None if isinstance(value, bool) else _wrong("a bool", value)
    if kind == "string":
        return _explain_string(logical, value)
    if kind == "enum":
        if value in schema["symbols"]:
            return None
        return Fault((), f"is none of the symbols of {simple_name(schema['name'])}")
    if logical == "decimal":
        return _explain_decimal(schema, value)
    return _explain_bytes(kind, schema, value)


def _explain_integer(kind: str, logical: str, value: Any) -> Fault | None:
    expected = _LOGICAL_TYPES.get(logical)
    if expected is not None and isinstance(value, expected):
        is_zoned = logical.startswith("timestamp-")
        if is_zoned and isinstance(value, datetime) and value.tzinfo is None:
            # The same value would be another time on a machine elsewhere.
            return Fault((), "has no time zone")
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        return _wrong("an int" if expected is None else f"a {expected.__name__}", value)
    least, most = _INT if kind == "int" else _LONG
    if least <= int(value) <= most:
        return None
    return Fault(
        (), f"is out of the range of {kind}, {32 if kind == 'int' else 64} bits"
    )


def _explain_number(kind: str, value: Any) -> Fault | None:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return _wrong("a float", value)
    if kind == "double":
        return None
    number = float(value)
    if abs(number) < _LARGEST_FLOAT or number in (float("inf"), float("-inf")):
        return None
    if number != number:
        return None
    return Fault((), "is out of the range of float, 32 bits")


def _explain_string(logical: str, value: Any) -> Fault | None:
    if logical == "uuid":
        if isinstance(value, UUID):
            return None
        try:
            UUID(value)
        except (ValueError, TypeError, AttributeError):
            return _wrong("a UUID", value)
        return None
    if not isinstance(value, str):
        return _wrong("a str", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        return Fault((), "has a surrogate, which UTF-8 cannot write")
    return None


def _explain_decimal(schema: Mapping[str, Any], value: Any) -> Fault | None:
    if isinstance(value, bytes):
        return None
    if not isinstance(value, Decimal):
        return _wrong("a Decimal", value)
    if not value.is_finite():
        return Fault((), "must be finite")
    precision, scale = schema["precision"], schema.get("scale", 0)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # of a finite number
    if -exponent > scale:
        return Fault((), f"has {-exponent} places, and the schema {scale}")
    if len(digits) + exponent + scale > precision and any(digits):
        return Fault((), f"has more than {precision} digits")
    return None


def _explain_bytes(kind: str, schema: Mapping[str, Any], value: Any) -> Fault | None:
    if not isinstance(value, bytes | bytearray | memoryview):
        return _wrong("bytes", value)
    if kind == "fixed" and len(value) != schema["size"]:
        return Fault((), f"has {len(value)} bytes, and must have {schema['size']}")
    return None


def _wrong(noun: str, value: object) -> Fault:
    return Fault((), f"must be {noun}, not {type(value).__name__}")


# -- depth -----------------------------------------------------------------------------


def check_value(value: Any) -> None:
    """Check how deep a value is nested, without recursion.

    Raises:
        SerializationError: too deep, or it contains itself.
    """
    stack: list[Iterator[Any]] = [iter((value,))]
    while stack:
        found = next(stack[-1], stack)
        if found is stack:
            stack.pop()
            continue
        if isinstance(found, dict):
            stack.append(iter(found.values()))
        elif isinstance(found, list | tuple):
            stack.append(iter(found))
        # The value itself stands in the first.
        if len(stack) > MOST_LEVELS + 1:
            raise SerializationError(
                f"the value is nested more than {MOST_LEVELS} levels deep, or "
                "contains itself"
            )


def check_data(parsed: ParsedAvro, data: bytes, start: int) -> None:
    """Walk what fastavro is to read, without recursion and without a value.

    Args:
        parsed: the schema that wrote the data.
        data: the bytes.
        start: where they begin.

    Raises:
        SerializationError: they are nested too deeply, truncated, or have a decimal of
            more bytes, or an array of more items without bytes, than make sense.
    """
    _Walk(parsed.named, data, start).run(parsed.schema)


class _Walk:
    """Goes through data, type by type."""

    def __init__(self, named: Mapping[str, AvroType], data: bytes, place: int) -> None:
        self._named = named
        self._data = data
        self._place = place
        self._stack: list[Iterator[AvroType]] = []
        self._empty_items = 0

    def run(self, schema: AvroType) -> None:
        self._stack.append(iter((schema,)))
        while self._stack:
            found = next(self._stack[-1], None)
            if found is None:
                self._stack.pop()
            else:
                self._enter(found)
            if len(self._stack) > MOST_LEVELS + 1:
                raise SerializationError(
                    f"the data is nested more than {MOST_LEVELS} levels deep"
                )

    def _enter(self, schema: AvroType) -> None:
        schema = resolve(schema, self._named)
        while isinstance(schema, list):
            branch = self._number()
            if not 0 <= branch < len(schema):
                raise SerializationError(f"a union has no branch {branch}")
            schema = resolve(schema[branch], self._named)
        kind = type_of(schema, self._named)
        if kind in RECORDS:
            self._stack.append(field["type"] for field in schema["fields"])
        elif kind == "array":
            self._stack.append(self._items(schema["items"], is_map=False))
        elif kind == "map":
            self._stack.append(self._items(schema["values"], is_map=True))
        elif kind in ("bytes", "string", "fixed"):
            size = schema["size"] if kind == "fixed" else self._number()
            self._skip(size)
            if size > MOST_DECIMAL and _is_decimal(schema):
                raise SerializationError(
                    f"a decimal of {size} bytes; at most {MOST_DECIMAL} make sense"
                )
        elif kind in ("int", "long", "enum"):
            self._number()
        else:
            self._skip({"boolean": 1, "float": 4, "double": 8}.get(kind, 0))

    def _items(self, schema: AvroType, *, is_map: bool) -> Iterator[AvroType]:
        while True:
            count = self._number()
            if count == 0:
                return
            if count < 0:
                count = -count
                self._number()
            for _ in range(count):
                before = self._place
                if is_map:
                    self._skip(self._number())
                yield schema
                if self._place == before:
                    self._empty_items += 1
                    if self._empty_items > _MOST_EMPTY_ITEMS:
                        raise SerializationError(
                            f"an array of {count} items that take no bytes; at most "
                            f"{_MOST_EMPTY_ITEMS} make sense"
                        )

    def _number(self) -> int:
        raw = 0
        for shift in range(0, 70, 7):
            if self._place >= len(self._data):
                raise SerializationError("the data is truncated")
            byte = self._data[self._place]
            self._place += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                return raw >> 1 ^ -(raw & 1)
        raise SerializationError("an integer is longer than 64 bits")

    def _skip(self, count: int) -> None:
        if count < 0 or count > len(self._data) - self._place:
            raise SerializationError("the data is truncated")
        self._place += count


def _is_decimal(schema: AvroType) -> bool:
    return isinstance(schema, dict) and schema.get("logicalType") == "decimal"
