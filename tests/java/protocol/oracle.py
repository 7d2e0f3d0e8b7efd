"""Ask Kafka's own message classes, in one run of a JVM."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from codegen import jar
from codegen.facts import snake
from kafkaio.protocol._message import Data, Field, Message, Struct

HERE = Path(__file__).parent
JAVA = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=1")
JACKSON = "com.fasterxml.jackson.core"


@dataclass(frozen=True)
class Question:
    """How is ``message``, made for ``json_version``, written in ``version``?

    ``data`` is what we think it is: Java decodes it and encodes it again.
    """

    message: Message
    json_version: int
    version: int
    data: bytes | None


@dataclass(frozen=True)
class Answer:
    """Bytes, or the text of Java's exception."""

    encoded: bytes | str
    recoded: bytes | str | None


def ask(questions: Iterable[Question], folder: Path) -> list[Answer]:
    """Compile the oracle into ``folder`` and put all questions to it."""
    class_path = ":".join([str(folder), *(str(path) for path in jars())])
    source = str(HERE / "MessageOracle.java")
    subprocess.run(["javac", "-cp", class_path, "-d", str(folder), source], check=True)
    names = camel_names()
    lines = [_line(question, names) for question in questions]
    run = subprocess.run(
        [*JAVA, "-cp", class_path, "MessageOracle"],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
    )
    answers = [_answer(line) for line in run.stdout.decode().splitlines()]
    assert len(answers) == len(lines)
    return answers


def jars() -> list[Path]:
    return [
        jar.kafka_clients(),
        *(
            jar.fetch(JACKSON, f"jackson-{part}", jar.JACKSON_VERSION)
            for part in ("databind", "core", "annotations")
        ),
        jar.fetch("org.slf4j", "slf4j-api", "1.7.36"),
    ]


def camel_names() -> dict[str, str]:
    """Map our field names to Kafka's, as its JSON converters spell them."""
    names: dict[str, str] = {}

    def walk(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            name = field["name"]
            camel = name[0].lower() + name[1:]
            assert names.setdefault(snake(name), camel) == camel
            walk(field.get("fields", []))

    for schema in jar.schemas(jar.kafka_clients()):
        walk(schema.get("fields", []))
        for struct in schema.get("commonStructs", []):
            walk(struct["fields"])
    return names


def _line(question: Question, names: dict[str, str]) -> str:
    message = question.message
    suffix = "" if isinstance(message, Data) else "Data"
    value = _json(message, question.json_version, names)
    data = "-" if question.data is None else question.data.hex()
    head = (f"{message.NAME}{suffix}", question.json_version, question.version, data)
    return "\t".join([*map(str, head), json.dumps(value)])


def _json(struct: Struct, version: int, names: dict[str, str]) -> dict[str, object]:
    return {
        names[field.name]: _json_value(
            field, getattr(struct, field.name), version, names
        )
        for field in struct.SCHEMA
        if field.present(version)
    }


def _json_value(
    field: Field, value: object, version: int, names: dict[str, str]
) -> object:
    if isinstance(value, list):
        return [_json_value(field, item, version, names) for item in value]
    if isinstance(value, Struct):
        return _json(value, version, names)
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _answer(line: str) -> Answer:
    first, second = line.split("\t")
    recoded = None if second == "-" else _result(second)
    return Answer(_result(first), recoded)


def _result(text: str) -> bytes | str:
    return text[1:] if text.startswith("!") else bytes.fromhex(text)
