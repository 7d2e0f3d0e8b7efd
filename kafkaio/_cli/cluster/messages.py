"""Converts messages of the protocol from and to JSON, for ``kafkaio request``.

Names are those of Kafka's schemas in snake_case. Bytes are text or ``{"base64": ...}``,
UUIDs are text, and missing fields have their defaults.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final
from uuid import UUID

from kafkaio.errors import ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Field, Request, Response, Struct
from kafkaio.protocol._requests import request_type


class MessageError(ValueError):
    """JSON does not match the schema; the text has the path of the field."""


def requests() -> dict[str, type[Request[Response]]]:
    """Return every request by its name, such as ``Metadata``, in order of the keys."""
    found = {}
    for key in ApiKey:
        try:
            kind = request_type(key)
        except ProtocolError:
            continue  # Kafka removed this API
        found[kind.NAME.removesuffix("Request")] = kind
    return found


def find_request(name: str) -> type[Request[Response]]:
    """Return a request by its name, in any case, or by its API key.

    Raises:
        MessageError: the request is unknown; the text has the nearest name.
    """
    every = requests()
    # api_versions, ApiVersions, ApiVersionsRequest and 18 all name one request.
    plain = name.lower().replace("_", "").replace("-", "").removesuffix("request")
    for each, kind in every.items():
        if plain in (each.lower(), str(kind.API_KEY)):
            return kind
    near = get_close_matches(plain, [each.lower() for each in every], 1)
    hint = next((f": did you mean {e}?" for e in every if [e.lower()] == near), "")
    raise MessageError(f"unknown request {name}{hint}")


# ---- from JSON ---------------------------------------------------------------------


def from_json(kind: type[Struct], value: object, path: str = "") -> Struct:
    """Return a message, or a part of one, from JSON.

    Raises:
        MessageError: a field is unknown, or a value has the wrong type.
    """
    if not isinstance(value, dict):
        raise MessageError(f"{path or 'the message'}: not an object")
    fields = {field.name: field for field in kind.SCHEMA}
    given = {}
    for name, each in value.items():
        at = f"{path}.{name}" if path else name
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            known = (
                f"did you mean {near[0]}?" if near else f"known: {', '.join(fields)}"
            )
            raise MessageError(f"{at}: no such field; {known}")
        # Fields that are not given get the defaults of the message's class.
        given[name] = _field_from(fields[name], each, at)
    return kind(**given)


def _field_from(field: Field, value: object, path: str) -> object:
    # An array may be nullable as a whole; its elements never are.
    if value is None:
        if field.nullable is None:
            raise MessageError(f"{path}: null is not allowed")
        return None
    if not field.array:
        return _value_from(field.type, value, path)
    if not isinstance(value, list):
        raise MessageError(f"{path}: not a list")
    return [_value_from(field.type, v, f"{path}[{i}]") for i, v in enumerate(value)]


def _value_from(kind: str | type[Struct], value: object, path: str) -> object:
    if not isinstance(kind, str):
        return from_json(kind, value, path)
    read = _READ.get(kind, _integer_from)
    try:
        return read(kind, value)
    except (TypeError, ValueError) as error:
        raise MessageError(f"{path}: {error}") from None


def _integer_from(kind: str, value: object) -> int:
    # "int16" or "uint32" without its letters is the number of bits.
    bits = int(kind.lstrip("uint") or 32)
    low, high = (
        (0, 2**bits) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    )
    # bool is a subclass of int.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"not a number of type {kind}")
    if not low <= value < high:
        raise ValueError(f"{value} does not fit {kind}")
    return value


def _float_from(_: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("not a number")
    return float(value)


def _string_from(_: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _bool_from(_: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _bytes_from(_: str, value: object) -> bytes:
    match value:
        case str():
            return value.encode()
        case {"base64": str() as text, **rest} if not rest:
            return b64decode(text, validate=True)
    raise ValueError('neither text nor {"base64": ...}')


def _uuid_from(_: str, value: object) -> UUID:
    return UUID(_string_from("", value))


_READ: Final[Mapping[str, Callable[[str, object], object]]] = {
    "string": _string_from,
    "bool": _bool_from,
    "bytes": _bytes_from,
    "records": _bytes_from,
    "uuid": _uuid_from,
    "float64": _float_from,
}


# ---- to JSON -----------------------------------------------------------------------


def to_json(message: Struct, version: int | None = None) -> dict[str, object]:
    """Return a message for JSON, with the fields of a version, or with all."""
    return {
        field.name: _to_json(getattr(message, field.name), version)
        for field in message.SCHEMA
        if version is None or field.present(version)
    }


def _to_json(value: object, version: int | None) -> object:
    if isinstance(value, Struct):
        return to_json(value, version)
    if isinstance(value, list | tuple):
        return [_to_json(each, version) for each in value]
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(data).decode()}
    return value


# ---- descriptions ------------------------------------------------------------------


def describe(kind: type[Struct]) -> list[dict[str, object]]:
    """Return the fields of a message, with the fields of its structs inside."""
    return [_description(field) for field in kind.SCHEMA]


def _description(field: Field) -> dict[str, object]:
    is_plain = isinstance(field.type, str)
    found: dict[str, object] = {
        "name": field.name,
        "type": ("[]" if field.array else "")
        + (field.type if isinstance(field.type, str) else field.type.__name__),
        "versions": list(field.versions),
        "nullable": None if field.nullable is None else list(field.nullable),
        "tag": field.tag,
        "fields": [],
    }
    if not is_plain:
        assert not isinstance(field.type, str)
        found["fields"] = describe(field.type)
    return found
