"""Schemas of Avro: read, checked for what would harm, and prepared for fastavro.

fastavro recurses in C, without a limit: data nested a few thousand levels deep ends the
process. So a schema is walked once: how deep its data can nest without a cycle is
bounded, and one with a cycle says so, as does one with arrays whose items take no
bytes. What `kafkaio.registry._avro_guard` checks for these, record by record, is then
free for all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from io import BytesIO
from types import ModuleType
from typing import Any, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError, SchemaError
from kafkaio.registry._schema import Schema

#: A schema as JSON has it, or as fastavro parsed it.
AvroType: TypeAlias = Any

#: Records, arrays and maps inside each other, in schemas and in data. In C each takes
#: up to a kilobyte of the stack, and threads of some systems have 512 of them.
MOST_LEVELS = 250
#: Lists and objects of JSON inside each other, in the text of a schema.
_MOST_JSON_LEVELS = 4 * MOST_LEVELS
#: Fields that one record can have without an array or a map.
_MOST_FIELDS = 100_000
#: More digits than a decimal has that is read.
_ALL_DIGITS = 100_000

RECORDS = frozenset(("record", "error"))
PRIMITIVES = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)


def fastavro() -> ModuleType:
    """Import fastavro.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import fastavro as module
    except ImportError as error:
        raise ConfigurationError(
            "Avro needs fastavro; install it with: pip install 'kafkaio[registry]'"
        ) from error
    return module


@dataclass(slots=True, eq=False)
class ParsedAvro:
    """A schema that fastavro parsed.

    Attributes:
        schema: what fastavro's functions take.
        named: the named types, its own and those that it refers to, by full name.
        needs_guard: whether data has to be walked before fastavro reads it: the schema
            has a cycle, or arrays whose items take no bytes.
        has_cycle: whether data can nest without a bound.
        has_record_union: whether a union has several records.
    """

    schema: AvroType
    named: dict[str, AvroType]
    needs_guard: bool
    has_cycle: bool
    has_record_union: bool


def load(text: str) -> AvroType:
    """Return the JSON of a schema.

    Raises:
        SchemaError: it is not JSON, or nested too deeply.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError("", f"is not valid Avro: not JSON: {error}") from error
    check_levels(found)
    return found


def check_levels(schema: AvroType) -> None:
    """Check how deep the JSON of a schema is nested, without recursion.

    Raises:
        SchemaError: too deep; fastavro would recurse.
    """
    level: list[Any] = [schema]
    for _ in range(_MOST_JSON_LEVELS):
        level = [
            child
            for each in level
            if isinstance(each, Mapping | list | tuple)
            for child in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not level:
            return
    raise SchemaError("", "is not valid Avro: nested too deeply")


def parse(schema: AvroType, references: Mapping[str, Schema]) -> ParsedAvro:
    """Parse a schema, and those that it refers to, for fastavro.

    Args:
        schema: the JSON of the schema.
        references: the schemas that it refers to, each after those that it needs.

    Raises:
        SchemaError: it is not valid, or its data would nest too deeply.
    """
    parse_schema = fastavro().parse_schema
    named: dict[str, AvroType] = {}
    try:
        for reference in references.values():
            parse_schema(load(reference.text), named)
        parsed = parse_schema(schema, named)
    except SchemaError:
        raise
    except Exception as error:
        # fastavro raises what it meets: KeyError, TypeError, its own.
        detail = f"{type(error).__name__}: {error}"
        raise SchemaError("", f"is not valid Avro: {detail}") from error
    survey = _Survey(named)
    try:
        survey.measure(parsed, 0)
    except RecursionError:
        raise SchemaError("", "is not usable: it is nested too deeply") from None
    return ParsedAvro(
        _self_contained(parsed, named),
        named,
        survey.has_cycle or survey.has_empty_items,
        survey.has_cycle,
        survey.has_record_union,
    )


def _self_contained(schema: AvroType, named: dict[str, AvroType]) -> AvroType:
    """Return a schema that fastavro's functions take without parsing it again.

    They parse whatever is no marked dict, and would not find what was defined before.
    """
    if isinstance(schema, list):
        return [_self_contained(each, named) for each in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            return schema
        schema = named[schema]
    return {**schema, "__fastavro_parsed": True, "__named_schemas": named}


class _Survey:
    """Walks a parsed schema once, and finds what its data can do."""

    def __init__(self, named: Mapping[str, AvroType]) -> None:
        self._named = named
        self._open: set[str] = set()
        self._known: dict[str, tuple[int, int, int]] = {}
        self.has_cycle = False
        self.has_empty_items = False
        self.has_record_union = False

    def measure(self, schema: AvroType, depth: int) -> tuple[int, int, int]:
        """Return the least bytes of a value, its fields, and its levels.

        Args:
            schema: the type.
            depth: how many records, arrays and maps it is in.

        Raises:
            SchemaError: too many levels or fields.
        """
        if depth > MOST_LEVELS:
            raise SchemaError(
                "", f"is not usable: its data nests more than {MOST_LEVELS} levels deep"
            )
        if isinstance(schema, list):
            return self._union(schema, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in RECORDS:
            return self._record(schema, depth)
        if kind == "array":
            least, fields, levels = self.measure(schema["items"], depth + 1)
            self.has_empty_items |= least == 0
            return 1, fields, levels + 1
        if kind == "map":
            _, fields, levels = self.measure(schema["values"], depth + 1)
            return 1, fields, levels + 1
        if kind == "fixed":
            return schema["size"], 1, 0
        if kind == "null":
            return 0, 1, 0
        if kind in PRIMITIVES or kind == "enum":
            return 1, 1, 0
        return self._reference(kind, depth)

    def _reference(self, name: AvroType, depth: int) -> tuple[int, int, int]:
        if not isinstance(name, str):
            return self.measure(name, depth)
        if name in self._open:
            self.has_cycle = True
            return 1, 1, 0
        known = self._known.get(name)
        if known is None or depth + known[2] > MOST_LEVELS:
            return self.measure(self._named[name], depth)
        return known

    def _union(self, schema: list[AvroType], depth: int) -> tuple[int, int, int]:
        branches = [self.measure(each, depth) for each in schema]
        records = sum(type_of(each, self._named) in RECORDS for each in schema)
        self.has_record_union |= records > 1
        fields = max((each[1] for each in branches), default=1)
        return 1, fields, max((each[2] for each in branches), default=0)

    def _record(self, schema: AvroType, depth: int) -> tuple[int, int, int]:
        name = schema["name"]
        if name in self._open:
            self.has_cycle = True
            return 1, 1, 0
        self._open.add(name)
        least, fields, levels, names = 0, 1, 0, set()
        for field in schema["fields"]:
            if field["name"] in names:
                raise SchemaError(
                    "",
                    f"is not valid Avro: {name} has two fields {field['name']!r}",
                )
            names.add(field["name"])
            found = self.measure(field["type"], depth + 1)
            least += found[0]
            fields += found[1]
            levels = max(levels, found[2])
        self._open.discard(name)
        if fields > _MOST_FIELDS:
            raise SchemaError(
                "", f"is not usable: {name} has more than {_MOST_FIELDS} fields"
            )
        self._known[name] = least, fields, levels + 1
        return self._known[name]


def type_of(schema: AvroType, named: Mapping[str, AvroType]) -> str:
    """Return the kind of a type: ``record``, ``union``, ``long``, ..."""
    while True:
        if isinstance(schema, list):
            return "union"
        if isinstance(schema, str):
            if schema in PRIMITIVES or schema not in named:
                return schema
            schema = named[schema]
        else:
            kind = schema["type"]
            if isinstance(kind, str) and kind not in named:
                return kind
            schema = kind


def resolve(schema: AvroType, named: Mapping[str, AvroType]) -> AvroType:
    """Return the definition of a type that is a name; others as they are."""
    while True:
        if isinstance(schema, dict) and not isinstance(schema["type"], str):
            schema = schema["type"]
            continue
        name = schema["type"] if isinstance(schema, dict) else schema
        if not isinstance(name, str) or name not in named:
            return schema
        schema = named[name]


def simple_name(name: str) -> str:
    """Return a full name without its namespace."""
    return name.rpartition(".")[2]


def record_of(schema: AvroType) -> str:
    """Return the full name of the type that a schema defines; empty without one."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("name"), str):
        return ""
    name: str = schema["name"]
    namespace = schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name


def read_all_digits(parsed: ParsedAvro) -> bool:
    """Let fastavro read decimals with all their digits.

    It rounds to the precision of the schema without an error. The schema must not be
    used for anything but reading afterwards.

    Returns:
        whether there are decimals.
    """
    found = False
    seen: set[int] = set()
    stack: list[AvroType] = [parsed.schema, *parsed.named.values()]
    while stack:
        each = stack.pop()
        if isinstance(each, list):
            stack += each
        elif isinstance(each, dict) and id(each) not in seen:
            seen.add(id(each))
            if each.get("logicalType") == "decimal" and "precision" in each:
                each["precision"] = _ALL_DIGITS
                found = True
            stack += [each.get("type"), each.get("items"), each.get("values")]
            stack += each.get("fields", ())
    return found


def is_same_data(one: ParsedAvro, other: ParsedAvro) -> bool:
    """Whether two schemas read the same bytes as the same values.

    They may differ in namespaces, docs, aliases and defaults: then nothing has to be
    resolved record by record.
    """
    shapes = [_shape(each.schema, each.named, set()) for each in (one, other)]
    return bool(shapes[0] == shapes[1])


_SHAPING = ("logicalType", "precision", "scale", "size", "symbols")


def _shape(schema: AvroType, named: Mapping[str, AvroType], seen: set[str]) -> AvroType:
    if isinstance(schema, list):
        return [_shape(each, named, seen) for each in schema]
    schema = resolve(schema, named)
    if isinstance(schema, str):
        return {"type": schema}
    kind = schema["type"]
    shape: dict[str, Any] = {"type": kind}
    shape |= {name: schema[name] for name in _SHAPING if name in schema}
    if "name" in schema:
        shape["name"] = simple_name(schema["name"])
        if schema["name"] in seen:
            return shape
        seen.add(schema["name"])
    if kind in RECORDS:
        shape["fields"] = [
            (field["name"], _shape(field["type"], named, seen))
            for field in schema["fields"]
        ]
    elif kind == "array":
        shape["items"] = _shape(schema["items"], named, seen)
    elif kind == "map":
        shape["items"] = _shape(schema["values"], named, seen)
    return shape


def adopt_logical_types(writer: ParsedAvro, reader: ParsedAvro) -> None:
    """Give the types of a writer the logical types that the reader has for them.

    fastavro makes values by the logical types of the writer. A writer that has none, as
    many in Java, would give a string for a UUID, and a number for a time. Where both
    have one, the writer's says what the bytes mean.

    Args:
        writer: the writer's schema, which is changed.
        reader: the reader's schema.
    """
    _Adoption(writer.named, reader.named).top(writer, reader)


class _Adoption:
    """Walks the schemas of a writer and a reader side by side."""

    def __init__(
        self, writers: Mapping[str, AvroType], readers: Mapping[str, AvroType]
    ) -> None:
        self._writers = writers
        self._readers = readers
        self._seen: set[str] = set()

    def top(self, writer: ParsedAvro, reader: ParsedAvro) -> None:
        adopted = self._adopt(writer.schema, reader.schema)
        writer.schema = _self_contained(adopted, writer.named)

    def _adopt(self, writer: AvroType, reader: AvroType) -> AvroType:
        """Return the writer's type, with what the reader calls it."""
        if isinstance(writer, list):
            return [self._adopt(each, reader) for each in writer]
        kind = type_of(writer, self._writers)
        found = self._match(kind, resolve(writer, self._writers), reader)
        if found is None:
            return writer
        if kind in RECORDS:
            self._record(resolve(writer, self._writers), found)
            return writer
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            return {**writer, inner: self._adopt(writer[inner], found[inner])}
        if kind not in PRIMITIVES:
            return writer
        return _renamed(kind, writer, found)

    def _match(self, kind: str, writer: AvroType, reader: AvroType) -> AvroType:
        """Return the type of the reader, or the branch, for one of the writer."""
        for branch in reader if isinstance(reader, list) else [reader]:
            each = resolve(branch, self._readers)
            if type_of(each, self._readers) != kind:
                continue
            if kind not in RECORDS or _is_named_alike(writer, each):
                return each
        return None

    def _record(self, writer: AvroType, reader: AvroType) -> None:
        if writer["name"] in self._seen:
            return
        self._seen.add(writer["name"])
        fields = {}
        for field in reader["fields"]:
            for name in (field["name"], *field.get("aliases", ())):
                fields[name] = field["type"]
        for field in writer["fields"]:
            if field["name"] in fields:
                field["type"] = self._adopt(field["type"], fields[field["name"]])


def _is_named_alike(one: AvroType, other: AvroType) -> bool:
    return simple_name(one["name"]) == simple_name(other["name"])


def _renamed(kind: str, writer: AvroType, reader: AvroType) -> AvroType:
    written = writer.get("logicalType") if isinstance(writer, dict) else None
    wanted = reader.get("logicalType") if isinstance(reader, dict) else None
    if written is None and wanted is not None:
        return {
            "type": kind,
            **{name: reader[name] for name in _SHAPING if name in reader},
        }
    return kind if wanted is None and written is not None else writer


def decode_defaults(parsed: ParsedAvro) -> bool:
    """Replace the defaults of a reader's schema by the values that they stand for.

    fastavro puts a default into a record as the schema has it: a number for a time, a
    string for bytes, and the same list into each record.

    Args:
        parsed: the reader's schema, which is for this use alone.

    Returns:
        whether a default is a value that a user could change.
    """
    is_mutable = False
    for record in _records(parsed):
        for field in record["fields"]:
            if "default" in field and not field.get("__kafkaio_default"):
                field["default"] = _decoded(field, parsed.named)
                field["__kafkaio_default"] = True
            is_mutable |= isinstance(field.get("default"), list | dict)
    return is_mutable


def _records(parsed: ParsedAvro) -> Iterator[AvroType]:
    stack, seen = [parsed.schema, *parsed.named.values()], set()
    while stack:
        schema = stack.pop()
        if isinstance(schema, list):
            stack.extend(schema)
        elif isinstance(schema, dict) and id(schema) not in seen:
            seen.add(id(schema))
            kind = schema["type"]
            if kind in RECORDS if isinstance(kind, str) else False:
                yield schema
                stack.extend(field["type"] for field in schema["fields"])
            else:
                stack.extend(
                    schema[name]
                    for name in ("type", "items", "values")
                    if name in schema
                )


def _decoded(field: AvroType, named: dict[str, AvroType]) -> Any:
    avro = fastavro()
    holder = {
        "type": "record",
        "name": "kafkaio.Default",
        "fields": [{"name": "value", "type": field["type"]}],
        "__fastavro_parsed": True,
        "__named_schemas": named,
    }
    data = BytesIO()
    try:
        raw = plain_default(field["type"], deepcopy(field["default"]), named)
        avro.schemaless_writer(data, holder, {"value": raw})
        data.seek(0)
        return avro.schemaless_reader(data, holder, None)["value"]
    except Exception as error:
        raise SchemaError(
            "",
            f"is not valid Avro: the default of the field {field['name']!r} does not "
            "fit its type",
        ) from error


def plain_default(schema: AvroType, value: Any, named: Mapping[str, AvroType]) -> Any:
    """Return a default as fastavro writes it: its bytes stand in JSON as a string."""
    if isinstance(schema, list):
        for branch in schema:
            kind = type_of(branch, named)
            if kind == "null" and value is not None:
                continue
            return plain_default(branch, value, named)
        return value
    schema = resolve(schema, named)
    kind = type_of(schema, named)
    if kind in ("bytes", "fixed") and isinstance(value, str):
        return value.encode("latin-1")
    if kind == "array" and isinstance(value, list):
        return [plain_default(schema["items"], each, named) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {
            name: plain_default(schema["values"], each, named)
            for name, each in value.items()
        }
    if kind in RECORDS and isinstance(value, dict):
        return {
            field["name"]: plain_default(
                field["type"], value.get(field["name"], field.get("default")), named
            )
            for field in schema["fields"]
        }
    return value
