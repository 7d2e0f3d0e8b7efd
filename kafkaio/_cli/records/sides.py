"""Options for keys or values: ``-s avro``, ``-s key=string``; their formats."""

from __future__ import annotations

from typing import Final, TypeVar

import click

from kafkaio._generic import Generic
from kafkaio._named_tuple import NamedTuple

T = TypeVar("T")

#: Formats whose schemas a registry has, by the type of the schema.
REGISTERED: Final = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
#: Formats of Kafka's own serializers.
PLAIN: Final = (
    *("string", "short", "integer", "long", "float", "double", "boolean", "uuid"),
)
#: Formats whose text is the value itself, without JSON's quotes.
TEXTS: Final = frozenset(("string", "uuid"))
#: Other names: those of kcat are the letters of Python's `struct`.
_ALIASES: Final = {
    "s": "string",
    "h": "short",
    "i": "integer",
    "q": "long",
    "int": "integer",
    "bool": "boolean",
    "json-schema": "json",
    "jsonschema": "json",
    "proto": "protobuf",
}
_KEY, _VALUE = "key", "value"


class Sides(NamedTuple, Generic[T]):
    """What was said of keys and of values; None for nothing."""

    key: T | None = None
    value: T | None = None

    def of(self, *, is_key: bool) -> T | None:
        """Return what was said of one of them."""
        return self.key if is_key else self.value


def sides(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> Sides[str]:
    """Parse ``TEXT``, ``value=TEXT`` and ``key=TEXT``; a callback for click."""
    found: dict[str, str] = {}
    for text in values:
        side, equals, rest = text.partition("=")
        if not equals or side not in {_KEY, _VALUE}:
            side, rest = _VALUE, text
        if side in found:
            raise click.BadParameter(
                f"there are two for the {side}", context, parameter
            )
        found[side] = rest
    return Sides(found.get(_KEY), found.get(_VALUE))


def formats(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> Sides[str]:
    """Parse formats, as `sides` does."""

    def known(text: str | None) -> str | None:
        if text is None:
            return None
        name = _ALIASES.get(text, text)
        if name in REGISTERED or name in PLAIN:
            return name
        names = ", ".join([*REGISTERED, *PLAIN])
        hint = ""
        if set(text) <= set("<>bBcHIQ$xs"):
            hint = rf"; for kcat's {text} use -f '%v{{unpack[{text}]}}\n'"
        raise click.BadParameter(
            f"{text!r} is none of {names}{hint}", context, parameter
        )

    found = sides(context, parameter, values)
    return Sides(known(found.key), known(found.value))
