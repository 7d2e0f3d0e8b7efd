"""The serdes named after Kafka's own write the bytes that Java's serializers write."""

from __future__ import annotations

import math
import random
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafkaio.serde import (
    Boolean,
    DeserializationContext,
    Double,
    Float,
    Integer,
    Long,
    SerializationContext,
    Short,
    String,
    Uuid,
)
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("no broker is needed"),
]

TOOLS = Toolbox(find_release())
SOURCE = Path("tests/java/serde/Serialize.java")
COUNT = 300
SERDES: dict[str, Any] = {
    "short": Short(),
    "integer": Integer(),
    "long": Long(),
    "float": Float(),
    "double": Double(),
    "boolean": Boolean(),
    "uuid": Uuid(),
    "string": String(),
}
WRITING = SerializationContext("t", [], is_key=False)
READING = DeserializationContext("t", [], is_key=False)


def values() -> list[tuple[str, object]]:
    dice = random.Random(1)
    found: list[tuple[str, object]] = [("boolean", True), ("boolean", False)]
    for name, bits in (("short", 16), ("integer", 32), ("long", 64)):
        top = 2 ** (bits - 1)
        edges = [0, 1, -1, top - 1, -top]
        drawn = [dice.randrange(-top, top) for _ in range(COUNT)]
        found += [(name, value) for value in edges + drawn]
    for _ in range(COUNT):
        number = math.ldexp(dice.uniform(-1, 1), dice.randint(-120, 120))
        text = "".join(dice.choices("aZ09 äß€𝄞\t", k=dice.randint(0, 9)))
        found += [("double", number), ("float", number), ("string", text)]
        found.append(("uuid", UUID(int=dice.getrandbits(128))))
    return [*found, ("double", math.inf), ("float", -math.inf), ("double", -0.0)]


def as_java_reads(value: object) -> str:
    text = {math.inf: "Infinity", -math.inf: "-Infinity"}
    if isinstance(value, bool):
        return str(value).lower()
    return text.get(value, repr(value)) if isinstance(value, float) else str(value)


async def test_java_writes_the_same() -> None:
    asked = values()
    lines = [
        f"{name} {b64encode(as_java_reads(value).encode()).decode()}"
        for name, value in asked
    ]
    done = await TOOLS.program(SOURCE).run(stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    written = done.stdout.split("\n")[: len(asked)]
    for (name, value), java in zip(asked, written, strict=True):
        data = bytes.fromhex(java)
        assert SERDES[name].serialize(value, WRITING) == data, (name, value)
        if name != "float":  # what is read has 4 bytes of the 8 of a float of Python
            assert SERDES[name].deserialize(data, READING) == value
