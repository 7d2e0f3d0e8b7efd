"""The JSON schemas of classes, as `kafkaio.serde.Json` writes their instances."""

from __future__ import annotations

import json
import typing
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from kafkaio.errors import ConfigurationError, SerializationError
from kafkaio.registry._classes import (
    MISSING,
    ClassField,
    bare,
    family,
    fields_of,
    union_members,
)
from kafkaio.serde import Json, SerializationContext

#: A JSON schema, as JSON has it.
JsonType: TypeAlias = dict[str, Any]

_SCALARS: Mapping[Any, JsonType] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Decimal: {"type": ["string", "number"]},
    bytes: {"type": "string", "contentEncoding": "base64"},
    UUID: {"type": "string", "format": "uuid"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
}
_ARRAYS = (list, tuple, abc.Sequence, abc.MutableSequence)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_MAPS = (dict, abc.Mapping, abc.MutableMapping)
_REFERENCE = "#/$defs/{model}"


def schema_of(kind: type) -> JsonType:
    """Return the JSON schema of a class.

    A class of pydantic or msgspec gives its own. One of a dataclass or a TypedDict is
    closed: a property that is added is then a compatible change.

    Raises:
        ConfigurationError: the class, or one inside it, has no form in JSON.
    """
    compiler = _Compiler()
    top = compiler.schema(kind, kind.__name__)
    reference = top.pop("$ref", "").rpartition("/")[2]
    if reference and not compiler.is_recursive(reference):
        top = compiler.definitions.pop(reference)
    elif reference:
        top = {"$ref": _REFERENCE.format(model=reference)}
    made: JsonType = {"title": kind.__name__, **top}
    if compiler.definitions:
        made["$defs"] = {**compiler.definitions, **made.get("$defs", {})}
    return made


class _Compiler:
    """Collects the schemas of classes that refer to each other."""

    def __init__(self) -> None:
        self.definitions: dict[str, JsonType] = {}
        self._kinds: dict[str, type] = {}

    def is_recursive(self, name: str) -> bool:
        """Whether a definition is referred to by another, or by itself."""
        text = json.dumps(self.definitions)
        return f'"{_REFERENCE.format(model=name)}"' in text

    def schema(self, hint: Any, where: str) -> JsonType:
        """Return the schema of a type."""
        kind, _ = bare(hint)
        members = union_members(kind)
        if members is not None:
            return {"anyOf": [self.schema(each, where) for each in members]}
        if isinstance(kind, abc.Hashable) and kind in _SCALARS:
            return dict(_SCALARS[kind])
        library = family(kind)
        if library in ("pydantic", "msgspec") or hasattr(
            kind, "__pydantic_validator__"
        ):
            return self._foreign(kind)
        if library is not None:
            return self._class(kind, where)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        return self._generic(kind, where)

    def _generic(self, kind: Any, where: str) -> JsonType:
        origin = typing.get_origin(kind) or kind
        arguments = typing.get_args(kind)
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin in _MAPS:
            values = arguments[1] if len(arguments) == 2 else object
            return {
                "type": "object",
                "additionalProperties": self.schema(values, f"{where}[]"),
            }
        if origin is tuple and arguments and arguments[-1] is not ...:
            return self._tuple(arguments, where)
        if origin in _ARRAYS or origin in _SETS:
            item = arguments[0] if arguments else object
            made = {"type": "array", "items": self.schema(item, f"{where}[]")}
            return made | ({"uniqueItems": True} if origin in _SETS else {})
        raise ConfigurationError(f"{where}: {kind} has no JSON schema")

    def _tuple(self, arguments: Sequence[Any], where: str) -> JsonType:
        count = len(arguments)
        return {
            "type": "array",
            "prefixItems": [self.schema(each, f"{where}[]") for each in arguments],
            "minItems": count,
            "maxItems": count,
        }

    def _class(self, kind: type, where: str) -> JsonType:
        name = kind.__name__
        other = self._kinds.setdefault(name, kind)
        if other is not kind:
            raise ConfigurationError(f"{where}: two classes are named {name}")
        reference = {"$ref": _REFERENCE.format(model=name)}
        if name in self.definitions:
            return reference
        made: JsonType = {"title": name, "type": "object", "properties": {}}
        # There before its fields are looked at: they may refer to it.
        self.definitions[name] = made
        required = []
        for field in fields_of(kind):
            inner = self.schema(field.type, f"{where}.{field.name}")
            made["properties"][field.key] = inner | _default_of(field)
            if field.is_required:
                required.append(field.key)
        if required:
            made["required"] = required
        made["additionalProperties"] = False
        return reference

    def _foreign(self, kind: Any) -> JsonType:
        if hasattr(kind, "__pydantic_validator__"):
            from pydantic import TypeAdapter

            made: JsonType = TypeAdapter(kind).json_schema(ref_template=_REFERENCE)
            self.definitions |= made.pop("$defs", {})
            return made
        import msgspec

        template = _REFERENCE.replace("model", "name")
        schemas, found = msgspec.json.schema_components([kind], ref_template=template)
        self.definitions |= found
        (made,) = schemas
        return made


def _default_of(field: ClassField) -> JsonType:
    if field.default is MISSING:
        return {}
    write: Callable[..., bytes] = Json(field.type).serialize
    try:
        return {
            "default": json.loads(
                write(field.default, SerializationContext("", [], is_key=False))
            )
        }
    except SerializationError:
        # Such as None for a field that must not be None: no default at all.
        return {}
