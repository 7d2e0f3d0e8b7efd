"""JSON Schema: whether one schema accepts all that another one allows.

The rules are Confluent's: a property that is added to an object which allows any
further property can meet values of another type, so it is refused; and a keyword that
is not compared in detail has to stay as it is. What is accepted is safe, but for
``oneOf``: that a value fits two of its schemas is not found out, as in Confluent's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import unquote

from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.parsed import Difference, ParsedSchemaPort

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Node: TypeAlias = "bool | dict[str, Json]"

_TYPES: Final = frozenset(
    ("null", "boolean", "integer", "number", "string", "array", "object")
)
#: Keywords that say nothing about which values are valid.
_ANNOTATIONS: Final = frozenset(
    (
        *("$schema", "$id", "id", "$comment", "$defs", "definitions", "$anchor"),
        *("title", "description", "default", "examples", "deprecated", "format"),
        *("readOnly", "writeOnly", "contentEncoding", "contentMediaType"),
        *("$vocabulary", "connect.index", "connect.type", "javaType"),
    )
)
#: Keywords that are compared in detail below.
_COMPARED: Final = frozenset(
    (
        *("$ref", "type", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("minLength", "maxLength", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("items", "minItems", "maxItems", "uniqueItems"),
        *("properties", "required", "additionalProperties"),
        *("minProperties", "maxProperties"),
    )
)
#: The upper limits and the lower ones, by the type that they are about.
_UPPER: Final = {
    "maxLength": "string",
    "maxItems": "array",
    "maxProperties": "object",
}
_LOWER: Final = {
    "minLength": "string",
    "minItems": "array",
    "minProperties": "object",
}


@dataclass(slots=True, eq=False)
class JsonSchema:
    """A schema, and those that it refers to by their names."""

    root: Node
    references: Mapping[str, Node]

    def text(self, *, is_normal: bool) -> str:
        """Return its text without blanks."""
        return json.dumps(
            self.root, separators=(",", ":"), sort_keys=is_normal, ensure_ascii=False
        )

    def serialized(self) -> str:
        """Return the same."""
        return self.text(is_normal=False)

    def differences(self, writer: ParsedSchemaPort) -> list[Difference]:
        """Return why it does not accept all that another schema allows."""
        assert isinstance(writer, JsonSchema)
        return _Check(self, writer).compare(self.root, writer.root, "#")

    def resolve(self, node: Node) -> Node:
        """Return what a node stands for, if it is a reference."""
        for _ in range(len(self.references) + 100):
            target = node.get("$ref") if isinstance(node, dict) else None
            if not isinstance(target, str):
                return node
            node = self._find(target)
        raise InvalidSchema("its references lead nowhere")

    def _find(self, target: str) -> Node:
        name, _, pointer = target.partition("#")
        found: Json = self.root if not name else self.references.get(name)
        if found is None:
            raise InvalidSchema(f"$ref leads nowhere: {target}")
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise InvalidSchema(f"$ref leads nowhere: {target}")
        return _node(found)


def parse(text: str, references: Mapping[str, str]) -> JsonSchema:
    """Parse a schema.

    Args:
        text: the schema.
        references: the texts of those that it refers to, by name.

    Raises:
        InvalidSchema: it is not a schema.
        ImportError: jsonschema is not installed; it comes with ``kafkaio[registry]``.
    """
    parsed = JsonSchema(
        _load(text), {name: _load(other) for name, other in references.items()}
    )
    try:
        _check_references(parsed, parsed.root)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    return parsed


def _load(text: str) -> Node:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        found = _node(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"it is not JSON: {error}") from error
    try:
        # Its stubs know objects alone; a boolean is a schema, too.
        validator_for(found).check_schema(found)  # type: ignore[arg-type]
    except SchemaError as error:
        raise InvalidSchema(error.message) from error
    return found


def _node(found: Json) -> Node:
    if not isinstance(found, bool | dict):
        raise InvalidSchema("a schema must be an object or a boolean")
    return found


def _check_references(schema: JsonSchema, found: Json) -> None:
    if isinstance(found, dict):
        if isinstance(found.get("$ref"), str):
            schema.resolve(found)
        inner = list(found.values())
    else:
        inner = found if isinstance(found, list) else []
    for each in inner:
        _check_references(schema, each)


@dataclass(slots=True)
class _Check:
    """One comparison; pairs that are being compared are taken to agree."""

    _reader: JsonSchema
    _writer: JsonSchema
    #: By the identity of both; the nodes are kept, so that no other one gets it.
    _entered: dict[tuple[int, int], object] = field(default_factory=dict)

    def compare(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        """Compare two nodes at a path."""
        target = self._reader.resolve(reader)
        if target is not reader and isinstance(reader, dict):
            # Newer drafts obey what stands beside a reference, older ones do not. The
            # stricter reading is taken: of the writer, the target alone.
            beside = {key: each for key, each in reader.items() if key != "$ref"}
            if beside.keys() - _ANNOTATIONS:
                found = self.compare(beside, writer, path)
                return found + self.compare(target, writer, path)
        reader = target
        writer = self._writer.resolve(writer)
        if reader is True or reader == {} or writer is False:
            return []
        if reader is False:
            return [_difference("TYPE_NARROWED", path)]
        wanted = _as_dict(reader)
        given = _as_dict(writer)
        pair = (id(wanted), id(given))
        if pair in self._entered:
            return []
        self._entered[pair] = (wanted, given)
        return self._compare(wanted, given, path)

    def _compare(
        self, reader: dict[str, Json], writer: dict[str, Json], path: str
    ) -> list[Difference]:
        found = self._combined(reader, writer, path)
        if found is not None:
            return found
        kinds = _types_of(writer)
        found = _unlike(reader, writer, path)
        if not _covers(_types_of(reader), kinds):
            found.append(_difference("TYPE_CHANGED", f"{path}/type"))
        found += _values(reader, writer, path)
        found += _limits(reader, writer, kinds, path)
        if "string" in kinds:
            found += _pattern(reader, writer, path)
        if kinds & {"integer", "number"}:
            found += _numbers(reader, writer, path)
        if "array" in kinds:
            found += self._arrays(reader, writer, path)
        if "object" in kinds:
            found += self._objects(reader, writer, path)
        return found

    # ---- schemas that are made of others ---------------------------------------------

    def _combined(
        self, reader: dict[str, Json], writer: dict[str, Json], path: str
    ) -> list[Difference] | None:
        """Compare alternatives; None if neither has any."""
        for name in ("anyOf", "oneOf"):
            if name in writer:
                return self._each(reader, _alternatives(writer, name), path)
        for name in ("anyOf", "oneOf"):
            if name in reader:
                rest = {key: each for key, each in reader.items() if key != name}
                found = self._some(_nodes(reader[name]), writer, f"{path}/{name}")
                return found + self._compare(rest, writer, path)
        if "allOf" in reader:
            rest = {key: each for key, each in reader.items() if key != "allOf"}
            found = self._compare(rest, writer, path)
            for number, node in enumerate(_nodes(reader["allOf"])):
                found += self.compare(node, writer, f"{path}/allOf/{number}")
            return found
        if "allOf" in writer:
            return self._any_part(reader, writer, path)
        return None

    def _each(
        self, reader: dict[str, Json], alternatives: list[Node], path: str
    ) -> list[Difference]:
        found = []
        for node in alternatives:
            found += self.compare(reader, node, path)
        return found

    def _some(
        self, readers: list[Node], writer: dict[str, Json], path: str
    ) -> list[Difference]:
        for node in readers:
            entered = dict(self._entered)
            if not self.compare(node, writer, path):
                return []
            self._entered = entered
        return [_difference("SUM_TYPE_NARROWED", path)]

    def _any_part(
        self, reader: dict[str, Json], writer: dict[str, Json], path: str
    ) -> list[Difference]:
        """A value fits all parts of the writer, so one that is accepted is enough."""
        rest = {key: each for key, each in writer.items() if key != "allOf"}
        for node in (rest, *_nodes(writer["allOf"])):
            entered = dict(self._entered)
            if not self.compare(reader, node, path):
                return []
            self._entered = entered
        return [_difference("COMBINED_TYPE_CHANGED", f"{path}/allOf")]

    # ---- arrays and objects ----------------------------------------------------------

    def _arrays(
        self, reader: dict[str, Json], writer: dict[str, Json], path: str
    ) -> list[Difference]:
        found = []
        if reader.get("uniqueItems") is True and writer.get("uniqueItems") is not True:
            found.append(_difference("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems"))
        wanted, given = reader.get("items", True), writer.get("items", True)
        if isinstance(wanted, list) or isinstance(given, list):
            if wanted != given:
                found.append(_difference("ITEMS_CHANGED", f"{path}/items"))
            return found
        return found + self.compare(_node(wanted), _node(given), f"{path}/items")

    def _objects(
        self, reader: dict[str, Json], writer: dict[str, Json], path: str
    ) -> list[Difference]:
        wanted, given = _properties(reader), _properties(writer)
        further = _node(reader.get("additionalProperties", True))
        written = _node(writer.get("additionalProperties", True))
        found = _required(reader, writer, path)
        for name in wanted.keys() & given.keys():
            place = f"{path}/properties/{name}"
            found += self.compare(wanted[name], given[name], place)
        for name in sorted(wanted.keys() - given.keys()):
            if self.compare(wanted[name], written, path):
                place = f"{path}/properties/{name}"
                found.append(_difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place))
        for name in sorted(given.keys() - wanted.keys()):
            if self.compare(further, given[name], path):
                place = f"{path}/properties/{name}"
                found.append(
                    _difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)
                )
        if self.compare(further, written, path):
            place = f"{path}/additionalProperties"
            found.append(_difference("ADDITIONAL_PROPERTIES_NARROWED", place))
        return found


def _difference(kind: str, path: str) -> Difference:
    return Difference(
        kind,
        f"The {{reader}} schema does not accept at path '{path}' what the {{writer}} "
        "schema allows",
    )


def _as_dict(node: Node) -> dict[str, Json]:
    # True allows what an empty object allows.
    return node if isinstance(node, dict) else {}


def _nodes(found: Json) -> list[Node]:
    return [_node(each) for each in found] if isinstance(found, list) else []


def _alternatives(writer: dict[str, Json], name: str) -> list[Node]:
    """Return each alternative together with what stands beside them."""
    rest = {key: each for key, each in writer.items() if key != name}
    if not set(rest) - _ANNOTATIONS:
        return _nodes(writer[name])
    return [{"allOf": [rest, node]} for node in _nodes(writer[name])]


def _types_of(node: dict[str, Json]) -> frozenset[str]:
    found = node.get("type")
    if isinstance(found, str):
        return frozenset((found,))
    if isinstance(found, list):
        return frozenset(each for each in found if isinstance(each, str))
    return _TYPES


def _covers(reader: frozenset[str], writer: frozenset[str]) -> bool:
    more = {"integer"} if "number" in reader else set()
    return writer <= reader | more


def _unlike(
    reader: dict[str, Json], writer: dict[str, Json], path: str
) -> list[Difference]:
    """Keywords that are not compared in detail must be the same, or be dropped."""
    changed = [
        name
        for name in sorted(reader.keys() - _COMPARED - _ANNOTATIONS)
        if _text(reader[name]) != _text(writer.get(name))
    ]
    # These change what "further properties" and "further items" are.
    more = ("patternProperties", "prefixItems", "additionalItems")
    changed += [name for name in more if name in writer and name not in reader]
    return [_difference("KEYWORD_CHANGED", f"{path}/{name}") for name in changed]


def _text(value: Json) -> str:
    # In Python 1 and True are equal, and in JSON they are not.
    return json.dumps(value, sort_keys=True)


def _values(
    reader: dict[str, Json], writer: dict[str, Json], path: str
) -> list[Difference]:
    wanted, given = _listed(reader), _listed(writer)
    if wanted is None or (given is not None and given <= wanted):
        return []
    return [_difference("ENUM_ARRAY_NARROWED", f"{path}/enum")]


def _listed(node: dict[str, Json]) -> set[str] | None:
    """Return the values that an enumeration allows, as texts."""
    found = [node["const"]] if "const" in node else node.get("enum")
    return {_text(each) for each in found} if isinstance(found, list) else None


def _limits(
    reader: dict[str, Json],
    writer: dict[str, Json],
    kinds: frozenset[str],
    path: str,
) -> list[Difference]:
    found = []
    for name, kind in _UPPER.items():
        limit, given = _number(reader, name), _number(writer, name)
        if kind in kinds and limit is not None and (given is None or given > limit):
            found.append(_difference("MAXIMUM_DECREASED", f"{path}/{name}"))
    for name, kind in _LOWER.items():
        limit, given = _number(reader, name) or 0, _number(writer, name) or 0
        if kind in kinds and given < limit:
            found.append(_difference("MINIMUM_INCREASED", f"{path}/{name}"))
    return found


def _number(node: dict[str, Json], name: str) -> float | None:
    found = node.get(name)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return found if is_number and isinstance(found, int | float) else None


def _pattern(
    reader: dict[str, Json], writer: dict[str, Json], path: str
) -> list[Difference]:
    if "pattern" in reader and reader["pattern"] != writer.get("pattern"):
        return [_difference("PATTERN_CHANGED", f"{path}/pattern")]
    return []


def _numbers(
    reader: dict[str, Json], writer: dict[str, Json], path: str
) -> list[Difference]:
    found = []
    # Draft 4 has booleans here, which change the meaning of the limit beside them.
    for name in ("exclusiveMinimum", "exclusiveMaximum"):
        flags = (reader.get(name), writer.get(name))
        if any(isinstance(flag, bool) for flag in flags):
            same = ("minimum", "maximum", name)
            if any(reader.get(each) != writer.get(each) for each in same):
                found.append(_difference("LIMIT_CHANGED", f"{path}/{name}"))
            return found
    for low, sign in (("Minimum", 1), ("Maximum", -1)):
        wanted, given = _bound(reader, low, sign), _bound(writer, low, sign)
        if wanted is not None and (given is None or given < wanted):
            kind = "MINIMUM_INCREASED" if sign > 0 else "MAXIMUM_DECREASED"
            found.append(_difference(kind, f"{path}/{low.lower()}"))
    step, given_step = _number(reader, "multipleOf"), _number(writer, "multipleOf")
    if step is not None and (given_step is None or given_step % step != 0):
        found.append(_difference("MULTIPLE_OF_CHANGED", f"{path}/multipleOf"))
    return found


def _bound(node: dict[str, Json], name: str, sign: int) -> tuple[float, bool] | None:
    """Return the tighter bound: the limit, and whether it is excluded itself."""
    bounds = []
    for keyword, is_excluded in ((name.lower(), False), (f"exclusive{name}", True)):
        limit = _number(node, keyword)
        if limit is not None:
            bounds.append((limit * sign, is_excluded))
    return max(bounds, default=None)


def _properties(node: dict[str, Json]) -> dict[str, Node]:
    found = node.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: _node(each) for name, each in found.items()}


def _required(
    reader: dict[str, Json], writer: dict[str, Json], path: str
) -> list[Difference]:
    properties = _properties(reader)
    found = []
    for name in _names(reader) - _names(writer):
        node = properties.get(name, True)
        # A reader fills in the default.
        if isinstance(node, dict) and "default" in node:
            continue
        place = f"{path}/required/{name}"
        found.append(_difference("REQUIRED_ATTRIBUTE_ADDED", place))
    return found


def _names(node: dict[str, Json]) -> set[str]:
    found = node.get("required")
    listed = found if isinstance(found, list) else []
    return {each for each in listed if isinstance(each, str)}
