"""Avro schemas: from JSON to types and back (Apache Avro 1.12, "Schema Declaration").

`parse` checks what Avro's own parser for Java checks, and `render` writes a schema as
that parser does, so that two texts of one schema are the same schema for a registry.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kafkaio.testing._registry.errors import InvalidSchema

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANGES: Final = {"int": 31, "long": 63}
_ORDERS: Final = frozenset(("ascending", "descending", "ignore"))
#: Attributes with a meaning of Avro's; all others are kept as they are.
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "record": frozenset(("type", "name", "namespace", "doc", "fields", "aliases")),
    "enum": frozenset(
        ("type", "name", "namespace", "doc", "symbols", "default", "aliases")
    ),
    "fixed": frozenset(("type", "name", "namespace", "doc", "size", "aliases")),
    "array": frozenset(("type", "items")),
    "map": frozenset(("type", "values")),
    "field": frozenset(("name", "type", "doc", "default", "order", "aliases")),
}
_ONLY_TYPE: Final = frozenset(("type",))

#: A value of JSON.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Properties: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A type without a name: null, boolean, int, long, float, double, bytes, string."""

    kind: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Values of one type, in order."""

    items: AvroType
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Values of one type, by strings."""

    values: AvroType
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A value of one of several types."""

    branches: tuple[AvroType, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """So many bytes."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """One of several symbols.

    Attributes:
        default: what a reader takes for a symbol that it does not know.
    """

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RecordField:
    """A field of a record.

    Attributes:
        has_default: whether it has a default, which may be None.
    """

    name: str
    type: AvroType
    has_default: bool = False
    default: Json = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Record:
    """Fields by name. Its fields come after it, because they can be of its own type."""

    name: str
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = field(default_factory=dict)
    fields: tuple[RecordField, ...] = ()


NamedType: TypeAlias = Record | Enum | Fixed
AvroType: TypeAlias = Primitive | Array | Map | Union | Fixed | Enum | Record


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    """A schema as a whole.

    Attributes:
        root: its type.
        foreign: names that it uses and that other schemas define.
    """

    root: AvroType
    foreign: frozenset[str] = frozenset()


def kind_of(avro_type: AvroType) -> str:
    """Return Avro's word for a type, such as ``record``."""
    if isinstance(avro_type, Primitive):
        return avro_type.kind
    return type(avro_type).__name__.lower()


# ---- from JSON -----------------------------------------------------------------------


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Parse a schema.

    Args:
        text: the schema, as JSON.
        references: the texts of the schemas whose names it uses, each after those that
            it uses itself.

    Raises:
        InvalidSchema: one of them is not a schema; the message says why.
    """
    parser = _Parser()
    try:
        for each in references:
            parser.parse(_load(each), "")
        foreign = frozenset(parser.names)
        return AvroSchema(parser.parse(_load(text), ""), foreign)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None


def _load(text: str) -> Json:
    try:
        loaded: Json = json.loads(text)
    except ValueError as error:
        # A single name of a primitive type is a schema without quotes, too.
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise InvalidSchema(f"it is not JSON: {error}") from error
    return loaded


class _Parser:
    """Parses schemas that know the names of those before."""

    def __init__(self) -> None:
        self.names: dict[str, NamedType] = {}

    def parse(self, given: Json, space: str) -> AvroType:
        """Parse a type.

        Args:
            given: the type, as JSON.
            space: the namespace in which it stands.
        """
        if isinstance(given, str):
            return self._named(given, space)
        if isinstance(given, list):
            return self._union(given, space)
        if not isinstance(given, dict):
            raise InvalidSchema(f"{_shown(given)} is not a type")
        kind = given.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f"No type: {_shown(given)}")
        return self._object(kind, given, space)

    def _object(self, kind: str, given: dict[str, Json], space: str) -> AvroType:
        match kind:
            case "array":
                return Array(self._part(given, "items", space), _others(given, kind))
            case "map":
                return Map(self._part(given, "values", space), _others(given, kind))
            case "record" | "error":
                return self._record(given, space)
            case "enum":
                return self._enum(given, space)
            case "fixed":
                return self._fixed(given, space)
            case _:
                pass
        if kind in PRIMITIVES:
            return Primitive(kind, _others(given, _ONLY_TYPE))
        return self._named(kind, space)

    def _part(self, given: dict[str, Json], name: str, space: str) -> AvroType:
        if name not in given:
            raise InvalidSchema(f"No {name} type: {_shown(given)}")
        return self.parse(given[name], space)

    def _named(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        for candidate in (full_name(name, space), name):
            if candidate in self.names:
                return self.names[candidate]
        raise InvalidSchema(f'Undefined schema: "{full_name(name, space)}"')

    def _union(self, given: list[Json], space: str) -> Union:
        branches = tuple(self.parse(each, space) for each in given)
        seen = set()
        for branch in branches:
            if isinstance(branch, Union):
                raise InvalidSchema(f"Nested union: {_shown(given)}")
            key = kind_of(branch)
            if isinstance(branch, Record | Enum | Fixed):
                key = branch.name
            if key in seen:
                raise InvalidSchema(f"Duplicate in union: {key}")
            seen.add(key)
        return Union(branches)

    def _record(self, given: dict[str, Json], space: str) -> Record:
        name = _name_of(given, space)
        record = Record(
            name,
            _aliases_of(given, name),
            _doc_of(given),
            _others(given, "record"),
        )
        self._add(record)
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {_shown(given)}")
        own_space = _space_of(name)
        record.fields = tuple(self._field(each, own_space) for each in fields)
        names = [each.name for each in record.fields]
        for each in names:
            if names.count(each) > 1:
                raise InvalidSchema(f"Duplicate field {each} in record {name}")
        return record

    def _field(self, given: Json, space: str) -> RecordField:
        if not isinstance(given, dict) or "type" not in given:
            raise InvalidSchema(f"No field type: {_shown(given)}")
        name = given.get("name")
        if not isinstance(name, str):
            raise InvalidSchema(f"No field name: {_shown(given)}")
        _check_name(name)
        order = given.get("order", "ascending")
        if not isinstance(order, str) or order not in _ORDERS:
            raise InvalidSchema(f"Illegal order of field {name}: {_shown(order)}")
        parsed = self.parse(given["type"], space)
        default = given.get("default")
        if "default" in given and not is_valid(parsed, default):
            raise InvalidSchema(
                f"Invalid default for field {name}: {_shown(default)} not a "
                f"{_shown(render(parsed, space))}"
            )
        return RecordField(
            name,
            parsed,
            "default" in given,
            default,
            order,
            _strings(given, "aliases"),
            _doc_of(given),
            _others(given, "field"),
        )

    def _enum(self, given: dict[str, Json], space: str) -> Enum:
        name = _name_of(given, space)
        if not isinstance(given.get("symbols"), list):
            raise InvalidSchema(f"Enum has no symbols: {_shown(given)}")
        symbols = _strings(given, "symbols")
        for symbol in symbols:
            _check_name(symbol)
        if len(set(symbols)) < len(symbols):
            raise InvalidSchema(f"Duplicate enum symbol in {name}")
        default = given.get("default")
        if default is not None and default not in symbols:
            raise InvalidSchema(
                f"The Enum Default: {_shown(default)} is not in the enum symbol set"
            )
        enum = Enum(
            name,
            symbols,
            default if isinstance(default, str) else None,
            _aliases_of(given, name),
            _doc_of(given),
            _others(given, "enum"),
        )
        self._add(enum)
        return enum

    def _fixed(self, given: dict[str, Json], space: str) -> Fixed:
        name = _name_of(given, space)
        size = given.get("size")
        if type(size) is not int or size < 0:
            raise InvalidSchema(f"Invalid or no size: {_shown(given)}")
        aliases = _aliases_of(given, name)
        fixed = Fixed(name, size, aliases, _doc_of(given), _others(given, "fixed"))
        self._add(fixed)
        return fixed

    def _add(self, named: NamedType) -> None:
        if named.name in self.names:
            raise InvalidSchema(f"Can't redefine: {named.name}")
        if named.name in PRIMITIVES:
            raise InvalidSchema("Schemas may not be named after primitives")
        self.names[named.name] = named


def full_name(name: str, space: str) -> str:
    """Return a name with its namespace, if it has none of its own."""
    return name if "." in name or not space else f"{space}.{name}"


def short_name(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(".")[2]


def _space_of(name: str) -> str:
    return name.rpartition(".")[0]


def _name_of(given: dict[str, Json], space: str) -> str:
    name = given.get("name")
    if not isinstance(name, str):
        raise InvalidSchema(f"No name in schema: {_shown(given)}")
    own = given.get("namespace")
    found = full_name(name, own if isinstance(own, str) else space)
    for part in found.split("."):
        _check_name(part)
    return found


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSchema(f"Illegal name: {name!r}")


def _aliases_of(given: dict[str, Json], name: str) -> tuple[str, ...]:
    space = _space_of(name)
    return tuple(full_name(alias, space) for alias in _strings(given, "aliases"))


def _strings(given: dict[str, Json], name: str) -> tuple[str, ...]:
    found = given.get(name, [])
    if not isinstance(found, list):
        raise InvalidSchema(f"{name} is not an array: {_shown(found)}")
    strings = tuple(each for each in found if isinstance(each, str))
    if len(strings) < len(found):
        raise InvalidSchema(f"{name} has what is not a string: {_shown(found)}")
    return strings


def _doc_of(given: dict[str, Json]) -> str | None:
    doc = given.get("doc")
    return doc if isinstance(doc, str) else None


def _others(given: dict[str, Json], kind: str | frozenset[str]) -> Properties:
    known = _KNOWN[kind] if isinstance(kind, str) else kind
    return {name: value for name, value in given.items() if name not in known}


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


# ---- defaults ------------------------------------------------------------------------


def is_valid(avro_type: AvroType, value: Json) -> bool:
    """Whether a value can be the default of a field of this type."""
    match avro_type:
        case Primitive(kind=kind):
            return _is_primitive(kind, value)
        case Fixed() | Enum():
            return isinstance(value, str)
        case Array(items=items):
            return isinstance(value, list) and all(is_valid(items, v) for v in value)
        case Map(values=values):
            return isinstance(value, dict) and all(
                is_valid(values, each) for each in value.values()
            )
        case Union(branches=branches):
            return any(is_valid(branch, value) for branch in branches)
        case Record(fields=fields):
            return isinstance(value, dict) and all(
                is_valid(each.type, value[each.name])
                if each.name in value
                else each.has_default
                for each in fields
            )


def _is_primitive(kind: str, value: Json) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in {"bytes", "string"}:
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind in _RANGES:
        limit = 1 << _RANGES[kind]
        return isinstance(value, int) and -limit <= value < limit
    return isinstance(value, int) or math.isfinite(value)


# ---- to JSON -------------------------------------------------------------------------


def to_text(schema: AvroSchema, *, is_normal: bool = False) -> str:
    """Return the text of a schema, without blanks.

    Args:
        schema: the schema.
        is_normal: whether attributes that Avro gives no meaning are sorted.
    """
    value = render(schema.root, "", set(schema.foreign), is_normal=is_normal)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def render(
    avro_type: AvroType,
    space: str,
    known: set[str] | None = None,
    *,
    is_normal: bool = False,
) -> Json:
    """Return a schema as JSON.

    Args:
        avro_type: the schema.
        space: the namespace in which it stands.
        known: the names that are defined already; those of the schema are added. None
            to write the names of named types alone.
        is_normal: as for `to_text`.
    """
    return _Writer(known, is_normal=is_normal).write(avro_type, space)


class _Writer:
    """Writes a type once, and its name afterwards."""

    def __init__(self, known: set[str] | None, *, is_normal: bool) -> None:
        self._known = known
        self._is_normal = is_normal

    def write(self, avro_type: AvroType, space: str) -> Json:
        """Return a type as JSON."""
        match avro_type:
            case Primitive(kind=kind, properties=properties):
                others = self._sorted(properties)
                return {"type": kind, **others} if others else kind
            case Array(items=items, properties=properties):
                inner = self.write(items, space)
                return {"type": "array", "items": inner, **self._sorted(properties)}
            case Map(values=values, properties=properties):
                inner = self.write(values, space)
                return {"type": "map", "values": inner, **self._sorted(properties)}
            case Union(branches=branches):
                return [self.write(branch, space) for branch in branches]
            case Record() | Enum() | Fixed():
                return self._write_named(avro_type, space)

    def _write_named(self, named: NamedType, space: str) -> Json:
        own = _space_of(named.name)
        if self._known is None or named.name in self._known:
            return short_name(named.name) if own == space else named.name
        self._known.add(named.name)
        found: dict[str, Json] = {
            "type": kind_of(named),
            "name": short_name(named.name),
        }
        if own != space:
            found["namespace"] = own
        if named.doc is not None:
            found["doc"] = named.doc
        found |= self._body(named, own)
        found |= self._sorted(named.properties)
        if named.aliases:
            found["aliases"] = _relative(named.aliases, own)
        return found

    def _body(self, named: NamedType, space: str) -> dict[str, Json]:
        match named:
            case Record(fields=fields):
                return {"fields": [self._write_field(each, space) for each in fields]}
            case Enum(symbols=symbols, default=default):
                body: dict[str, Json] = {"symbols": list(symbols)}
                return body if default is None else body | {"default": default}
            case Fixed(size=size):
                return {"size": size}

    def _write_field(self, each: RecordField, space: str) -> Json:
        found: dict[str, Json] = {
            "name": each.name,
            "type": self.write(each.type, space),
        }
        if each.doc is not None:
            found["doc"] = each.doc
        if each.has_default:
            found["default"] = each.default
        if each.order != "ascending":
            found["order"] = each.order
        if each.aliases:
            found["aliases"] = list(each.aliases)
        return found | self._sorted(each.properties)

    def _sorted(self, properties: Properties) -> dict[str, Json]:
        names = sorted(properties) if self._is_normal else list(properties)
        return {name: properties[name] for name in names}


def _relative(aliases: Iterable[str], space: str) -> list[Json]:
    return [
        short_name(alias) if _space_of(alias) == space else alias for alias in aliases
    ]
