"""What a lie is: one to three fields of an answer, changed so that it still encodes.

Every field of the schema has the same chance, whatever its number of items. The values
are those that break programs: extremes, codes of other APIs, names, ids and ports of
nobody, arrays that are emptied, doubled or halved, data that is cut.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID, Field, Struct

__all__ = ["Lie", "Site", "lie_about", "sites"]

_BITS: Final = {
    "int8": 8,
    "int16": 16,
    "uint16": 17,
    "int32": 32,
    "uint32": 33,
    "int64": 64,
    "varint": 32,
}
_CODES: Final = [int(code) for code in ErrorCode] + [-2, 999, 32_767, -32_768]
_PORTS: Final = [0, -1, 1, 65_535, 65_536, 2**31 - 1, -(2**31)]
_NAMES: Final = ["", "nobody", "no.such.host.invalid", "x" * 300, "\0", "ß\u2028", "__"]
_TIMES: Final = [-1, 1, 700, 5_000, 2**31 - 1, -(2**31)]
_FOREIGN: Final = UUID("f" * 32)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in an answer.

    Attributes:
        path: its name, with ``[]`` for the items of arrays.
        owner: the struct that has the field.
        field: the field.
    """

    path: str
    owner: Any
    field: Field

    @property
    def value(self) -> Any:
        """What is there now."""
        return getattr(self.owner, self.field.name)


@dataclass(frozen=True, slots=True)
class Lie:
    """One change.

    Attributes:
        path: where.
        before: what was there.
        after: what is there instead.
    """

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}: {self.before} -> {self.after}"


def sites(struct: Any, version: int, path: str = "") -> Iterator[Site]:
    """Yield every field of an answer that a version has."""
    for field in type(struct).SCHEMA:
        if not field.present(version):
            continue
        here = f"{path}.{field.name}" if path else field.name
        yield Site(here, struct, field)
        value = getattr(struct, field.name)
        if isinstance(field.type, str) or value is None:
            continue
        for item in value if field.array else (value,):
            yield from sites(item, version, here + ("[]" if field.array else ""))


def lie_about(
    answer: Any,
    version: int,
    dice: random.Random,
    without: Collection[str] = (),
) -> list[Lie]:
    """Change one to three fields of an answer; returns what was changed.

    Args:
        answer: the answer.
        version: its version.
        dice: decides.
        without: names of fields that stay as they are.
    """
    found: dict[str, list[Site]] = {}
    for site in sites(answer, version):
        if site.field.name not in without:
            found.setdefault(site.path, []).append(site)
    lies = []
    for path in dice.sample(sorted(found), min(len(found), dice.choice((1, 1, 2, 3)))):
        chosen = found[path]
        if dice.random() < 0.5:  # one item lies, or all of them do
            chosen = [dice.choice(chosen)]
        seed = dice.random()
        for site in chosen:
            before = site.value
            after = _other(site, version, random.Random(seed))
            if after != before:
                setattr(site.owner, site.field.name, after)
                lies.append(Lie(path, _short(before), _short(after)))
    return lies


def _short(value: object) -> str:
    text = repr(bytes(value) if isinstance(value, memoryview) else value)
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)})"


def _other(site: Site, version: int, dice: random.Random) -> Any:
    field, value = site.field, site.value
    if field.is_nullable(version) and value is not None and dice.random() < 0.2:
        return None
    if field.array:
        return _other_array(value or [], dice)
    if not isinstance(field.type, str):
        return value if value is None else _emptied(value)
    match field.type:
        case "bool":
            return not value
        case "string":
            return dice.choice([*_NAMES, f"{value}2"])
        case "uuid":
            return dice.choice([ZERO_UUID, _FOREIGN])
        case "float64":
            return dice.choice([0.0, -1.0, 1e308, float("nan"), float("inf")])
        case "bytes" | "records":
            return _other_bytes(bytes(value or b""), dice)
        case kind:
            return _other_number(field.name, kind, value, dice)


def _other_array(value: list[Any], dice: random.Random) -> list[Any]:
    ways = [[], value * 2, value[: len(value) // 2], value[::-1]]
    if value:
        ways.append([*value, *[dice.choice(value)] * 50])
    return dice.choice(ways)


def _other_bytes(value: bytes, dice: random.Random) -> bytes:
    ways = [b"", value * 2, value[: len(value) // 2], value[:-1], b"\xff" * 40]
    if value:
        at = dice.randrange(len(value))
        ways.append(value[:at] + bytes([value[at] ^ 0x55]) + value[at + 1 :])
    return dice.choice(ways)


def _other_number(name: str, kind: str, value: int, dice: random.Random) -> int:
    if name.endswith("error_code"):
        return dice.choice(_CODES)
    if name == "port":
        return dice.choice(_PORTS)
    if name.endswith("_ms"):
        return dice.choice(_TIMES)
    most: int = 2 ** (_BITS.get(kind, 32) - 1) - 1
    least = 0 if kind.startswith("uint") else -most - 1
    near = [0, 1, -1, value + 1, value - 1, value * 2, 7_777, most, least]
    return max(least, min(most, dice.choice(near)))


def _emptied(value: Struct) -> Struct:
    return type(value)()
