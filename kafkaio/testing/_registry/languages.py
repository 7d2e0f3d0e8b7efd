"""The three languages of schemas behind one interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.testing._registry import avro, avro_compatibility, json_schema, protobuf
from kafkaio.testing._registry.avro import AvroSchema
from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.parsed import Difference, ParsedSchemaPort

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"


class _AvroSchema:
    def __init__(self, parsed: AvroSchema) -> None:
        self._parsed = parsed

    def text(self, *, is_normal: bool) -> str:
        return avro.to_text(self._parsed, is_normal=is_normal)

    def serialized(self) -> str:
        return self.text(is_normal=False)

    def differences(self, writer: ParsedSchemaPort) -> list[Difference]:
        assert isinstance(writer, _AvroSchema)
        return avro_compatibility.differences(self._parsed, writer._parsed)


def parse(kind: str, text: str, references: Mapping[str, str]) -> ParsedSchemaPort:
    """Parse a schema.

    Args:
        kind: its language.
        text: the schema.
        references: the texts of the schemas that it uses, by the name that it has for
            them, each after those that it uses itself.

    Raises:
        InvalidSchema: it is not a schema of this language.
    """
    if kind == AVRO:
        return _AvroSchema(avro.parse(text, references.values()))
    if kind == JSON:
        return json_schema.parse(text, references)
    if kind == PROTOBUF:
        return protobuf.parse(text, references)
    raise InvalidSchema(f"Invalid schema type {kind}")
