"""Decoded keys and values as columns of Arrow, for files of Arrow and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from kafkaio._cli.records.decoded import Decoded, DecodedRecord
from kafkaio._cli.records.sides import PLAIN, Sides
from kafkaio._cli.text.exits import CommandFailed
from kafkaio.errors import SchemaError

if TYPE_CHECKING:
    from kafkaio.registry import Avro, JsonSchema, Registry

_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "uuid": pa.string(),
}


class DecodedColumns:
    """Makes tables of records whose keys or values are decoded.

    The type of a column is that of the first schema that a record names. A value of
    another version of it is resolved to that one. What has no schema, and Protobuf, is
    a string of JSON.

    Args:
        formats: the formats of keys and values.
        registry: the client by which they were decoded.
    """

    def __init__(self, formats: Sides[str], registry: Callable[[], Registry]) -> None:
        self._formats = formats
        self._registry = registry
        self._serdes: dict[bool, Avro[Any] | JsonSchema[Any] | None] = {}

    def table(self, records: Sequence[DecodedRecord]) -> pa.Table | None:
        """Return a table; None if no record so far says the type of a column.

        Raises:
            CommandFailed: a schema uses others.
            SerializationError: a value cannot be resolved to the type of the column.
            ConfigurationError: a schema has no type in Arrow.
        """
        from kafkaio.arrow import records_to_table

        table = records_to_table([record.raw for record in records], headers=True)
        for is_key, name in ((True, "key"), (False, "value")):
            if self._formats.of(is_key=is_key) is None:
                continue
            column = self._column(records, is_key=is_key)
            if column is None:
                return None
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, column)
        return table

    def _column(
        self, records: Sequence[DecodedRecord], *, is_key: bool
    ) -> pa.Array | None:
        language = str(self._formats.of(is_key=is_key))
        decoded = [it.decoded_key if is_key else it.decoded_value for it in records]
        if language in PLAIN:
            trees = [None if each is None else each.tree for each in decoded]
            return pa.array(trees, _TYPES[language])
        if language == "protobuf":
            return _texts(decoded)
        if is_key not in self._serdes:
            first = next((each for each in decoded if each is not None), None)
            if first is None:
                return None
            self._serdes[is_key] = self._serde(language, first)
        serde = self._serdes[is_key]
        if serde is None:
            return _texts(decoded)
        found = serde.to_arrow(
            [record.raw.key if is_key else record.raw.value for record in records]
        )
        if found is None:
            raise CommandFailed("a schema uses others: its values cannot be columns")
        return found

    def _serde(
        self, language: str, first: Decoded
    ) -> Avro[Any] | JsonSchema[Any] | None:
        from kafkaio.registry import Avro, JsonSchema

        number = first.schema_id
        if number is None:
            return None
        registry = self._registry()
        schema = registry.known(UUID(number) if isinstance(number, str) else number)
        if schema is None:
            raise SchemaError("", f"schema {number} is not at hand any more")
        if schema.references:
            raise CommandFailed("a schema uses others: its values cannot be columns")
        if language == "avro":
            return Avro(schema.text, registry)
        return JsonSchema(schema.text, registry)


def _texts(decoded: Sequence[Decoded | None]) -> pa.Array:
    texts = [None if each is None else each.text.decode() for each in decoded]
    return pa.array(texts, pa.string())
