"""Turn Kafka's JSON schemas into plain facts: names, types, version ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FieldFact", "MessageFact", "Range", "StructFact", "parse", "snake"]

Range = tuple[int, int]

_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: Words whose capitals are not word boundaries.
_ONE_WORD = {"KRaft": "Kraft", "2Pc": "_2pc"}
PRIMITIVES = frozenset(
    {"bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid"}
    | {"string", "bytes", "records"}
)


@dataclass(frozen=True, slots=True)
class FieldFact:
    """One field, with its version ranges cut to those the message has."""

    name: str
    type: str  # a primitive's name, or a struct's
    array: bool
    versions: Range
    nullable: Range | None
    tag: int | None
    tagged: Range | None
    default: object  # a value; None: null; (): the zero of the type
    ignorable: bool
    flexible: bool


@dataclass(frozen=True, slots=True)
class StructFact:
    """A named run of fields."""

    name: str
    fields: tuple[FieldFact, ...]


@dataclass(slots=True)
class MessageFact:
    """A top-level message; ``structs`` are ordered so that uses follow definitions."""

    name: str
    kind: str  # request, response, data, header
    api_key: int | None
    versions: Range
    stable: int
    flexible_from: int | None
    fields: tuple[FieldFact, ...] = ()
    structs: list[StructFact] = field(default_factory=list)


def snake(name: str) -> str:
    """Return ``TransactionalId`` as ``transactional_id``."""
    for word, replacement in _ONE_WORD.items():
        name = name.replace(word, replacement)
    return _WORD.sub("_", name).lower()


def parse(schema: dict[str, Any]) -> MessageFact | None:
    """Return the facts of one schema; None for an API that was removed from Kafka."""
    versions = _range(schema["validVersions"], (0, 1 << 15))
    if versions is None:
        return None
    flexible = _range(schema["flexibleVersions"], versions)
    message = MessageFact(
        name=schema["name"],
        kind=schema["type"],
        api_key=schema.get("apiKey"),
        versions=versions,
        stable=versions[1] - bool(schema.get("latestVersionUnstable")),
        flexible_from=flexible and flexible[0],
    )
    parser = _Parser(message, {c["name"]: c for c in schema.get("commonStructs", ())})
    message.fields = parser.fields(schema["fields"])
    return message


def _range(text: str, limit: Range) -> Range | None:
    """Return the part of a range such as ``3+`` or ``0-4`` that is within ``limit``."""
    if text == "none":
        return None
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a version range: {text!r}")
    first = int(match[1])
    last = limit[1] if match[2] else int(match[3] or first)
    first, last = max(first, limit[0]), min(last, limit[1])
    return (first, last) if first <= last else None


class _Parser:
    def __init__(self, message: MessageFact, common: dict[str, Any]) -> None:
        self._message = message
        self._common = common
        self._done: set[str] = set()

    def fields(self, raws: list[dict[str, Any]]) -> tuple[FieldFact, ...]:
        return tuple(f for raw in raws if (f := self._field(raw)) is not None)

    def _field(self, raw: dict[str, Any]) -> FieldFact | None:
        limit = self._message.versions
        versions = _range(raw["versions"], limit)
        if versions is None:  # only in versions that Kafka no longer speaks
            return None
        kind = raw["type"].removeprefix("[]")
        array = kind != raw["type"]
        if kind not in PRIMITIVES:
            self._struct(kind, raw)
        nullable = _range(raw.get("nullableVersions", "none"), versions)
        tagged = _range(raw.get("taggedVersions", "none"), versions)
        if tagged and nullable and kind not in PRIMITIVES:
            raise ValueError(
                f"{raw['name']}: a nullable tagged struct is not supported"
            )
        if kind == "records" and (tagged or array):
            raise ValueError(f"{raw['name']}: tagged or repeated records")
        return FieldFact(
            name=snake(raw["name"]),
            type=kind,
            array=array,
            versions=versions,
            nullable=nullable,
            tag=raw.get("tag"),
            tagged=tagged,
            default=_default(raw, kind, array=array, nullable=nullable),
            ignorable=bool(raw.get("ignorable", False)),
            flexible=raw.get("flexibleVersions") != "none",
        )

    def _struct(self, name: str, raw: dict[str, Any]) -> None:
        if name in self._done:
            return
        self._done.add(name)
        source = raw if "fields" in raw else self._common[name]
        struct = StructFact(name, self.fields(source["fields"]))
        self._message.structs.append(struct)


def _default(
    raw: dict[str, Any], kind: str, *, array: bool, nullable: Range | None
) -> object:
    value = raw.get("default")
    if value == "null" or (kind == "records" and nullable):
        return None
    if array or kind not in PRIMITIVES or value is None:
        return ()
    if kind == "bool":
        return str(value).lower() == "true" or ()
    if kind in {"string", "bytes", "uuid"}:
        return value or ()
    if kind == "float64":
        return float(value) or ()
    return int(str(value), 0) or ()
