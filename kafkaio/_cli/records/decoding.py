"""Decodes keys and values for ``kafkaio consume -s``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import UUID

from kafkaio._cli.records.decoded import (
    Decoded,
    DecodedRecord,
    ShownRecord,
    tree_of,
)
from kafkaio._cli.records.filters import Filter
from kafkaio._cli.records.sides import PLAIN, REGISTERED, TEXTS, Sides
from kafkaio._cli.text.exits import Exit, short
from kafkaio._cli.text.output import error_row
from kafkaio.errors import SchemaError, SerializationError
from kafkaio.serde import (
    Boolean,
    DeserializationContext,
    Double,
    Float,
    Integer,
    Long,
    Serde,
    Short,
    String,
    Uuid,
)

if TYPE_CHECKING:
    from kafkaio._cli.records.columns import DecodedColumns
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio.registry import Avro, Registry, Schema
    from kafkaio.registry._wire import SchemaName
    from kafkaio.types import Record

#: The serdes of Kafka's own formats.
SERDES: Final[Mapping[str, Serde[Any]]] = {
    "string": String(),
    "short": Short(),
    "integer": Integer(),
    "long": Long(),
    "float": Float(),
    "double": Double(),
    "boolean": Boolean(),
    "uuid": Uuid(),
}
_MAGIC: Final = b"\0"
#: The most failures that are printed one by one: a topic may be of another format.
_SHOWN: Final = 10

#: The most schemas that are kept.
_MOST_READS: Final = 1000

#: Reads bytes of one schema from a place on, as JSON shows them.
Read = Callable[[bytes, int], object]
_Decode = Callable[["Record", bytes], Awaitable[Decoded]]


class UndecodableRecord(Exception):
    """A key or a value is not what its format or its schema says.

    Attributes:
        record: the record.
        place: where it is, and whether it is the key or the value.
    """

    def __init__(self, record: Record, cause: Exception, *, is_key: bool) -> None:
        side = "key" if is_key else "value"
        self.place = f"{record.topic}-{record.partition}@{record.offset} {side}"
        super().__init__(f"{self.place}: {cause}")
        self.record = record


class RecordDecoder:
    """Decodes the keys and values of records.

    Args:
        formats: the formats of keys and of values; None for bytes as they are.
        registry: makes the client of the registry that has the schemas.
    """

    def __init__(self, formats: Sides[str], registry: Callable[[], Registry]) -> None:
        self._formats = formats
        self._make_registry = registry
        self._key = self._decoder(formats.key, is_key=True)
        self._value = self._decoder(formats.value, is_key=False)
        # By language, and by the id, or GUID and message, of the schema.
        self._reads: dict[tuple[str, object, bytes | None], Read] = {}

    async def decode(self, record: Record) -> DecodedRecord:
        """Return a record with its decoded key and value.

        Raises:
            UndecodableRecord: one of them cannot be decoded.
            RegistryError: the registry failed.
        """
        return DecodedRecord(
            record,
            await _side(self._key, record, record.key, is_key=True),
            await _side(self._value, record, record.value, is_key=False),
        )

    def columns(self) -> DecodedColumns:
        """Return what makes columns of Arrow of what was decoded; needs pyarrow."""
        from kafkaio._cli.records.columns import DecodedColumns

        return DecodedColumns(self._formats, lambda: self._registry)

    def _decoder(self, name: str | None, *, is_key: bool) -> _Decode | None:
        if name is None:
            return None
        if name in PLAIN:
            return _plain(name, is_key=is_key)

        async def decode(record: Record, data: bytes) -> Decoded:
            return await self._registered(name, record, data, is_key=is_key)

        return decode

    async def _registered(
        self, language: str, record: Record, data: bytes, *, is_key: bool
    ) -> Decoded:
        from kafkaio.registry._wire import naming_header, parse_prefix

        name = naming_header(record.headers, is_key=is_key)
        if name is None and language == "json" and not data.startswith(_MAGIC):
            # JSON that was written without a registry begins with no zero.
            return Decoded(_read_json(data, 0))
        name = name or parse_prefix(data)
        shown = str(name.id) if isinstance(name.id, UUID) else name.id
        if language == "avro":
            context = DeserializationContext(record.topic, record.headers, is_key)
            found = self._avro.deserialize(data, context)
            value = await found if isawaitable(found) else found
            return Decoded(tree_of(value), shown)
        key = (language, name.id, name.indexes)
        read = self._reads.get(key)
        if read is None:
            read = await self._read(language, name)
            # The indexes in a header may be anything.
            if len(self._reads) >= _MOST_READS:
                self._reads.clear()
            self._reads[key] = read
        return Decoded(read(data, name.start), shown)

    @cached_property
    def _registry(self) -> Registry:
        # Made when it is needed: JSON may have no schema.
        return self._make_registry()

    @cached_property
    def _avro(self) -> Avro[dict[str, object]]:
        from kafkaio.registry import Avro

        # With `dict` values are read as they were written, by any schema.
        return Avro(dict, self._registry)

    async def _read(self, language: str, name: SchemaName) -> Read:
        registry = self._registry
        if isinstance(name.id, UUID):
            schema = await registry.schema_by_guid(name.id)
        else:
            schema = await registry.schema(name.id)
        if schema.type != REGISTERED[language]:
            wanted = next(key for key, it in REGISTERED.items() if it == schema.type)
            raise SchemaError(
                "", f"schema {name.id} is of {schema.type}: use -s {wanted}"
            )
        references: Mapping[str, Schema] = {}
        if schema.references:
            references = await registry.references(schema)
        return _READERS[language](schema, references, name.indexes)


async def _side(
    decode: _Decode | None, record: Record, data: bytes | None, *, is_key: bool
) -> Decoded | None:
    # Null is a missing key or a tombstone whatever the format.
    if decode is None or data is None:
        return None
    try:
        return await decode(record, data)
    except (SerializationError, SchemaError) as error:
        raise UndecodableRecord(record, error, is_key=is_key) from error
    except RecursionError as error:
        fault = SerializationError("the value is nested too deeply")
        raise UndecodableRecord(record, fault, is_key=is_key) from error


def _plain(name: str, *, is_key: bool) -> _Decode:
    serde = SERDES[name]
    context = DeserializationContext("", [], is_key)

    async def decode(_record: Record, data: bytes) -> Decoded:
        value = serde.deserialize(data, context)
        return Decoded(tree_of(value), is_text=name in TEXTS)

    return decode


def _json(
    _schema: Schema, _references: Mapping[str, Schema], _indexes: bytes | None
) -> Read:
    return _read_json


def _read_json(data: bytes, start: int) -> object:
    try:
        tree = json.loads(data[start:].decode(), parse_constant=_refuse_constant)
        # A number may be too large for a float: JSON has no infinity to show.
        return tree_of(tree)
    except UnicodeDecodeError:
        raise SerializationError("the value is not UTF-8") from None
    except ValueError as error:
        raise SerializationError(f"the value is not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it has {name}")


def _protobuf(
    schema: Schema, references: Mapping[str, Schema], indexes: bytes | None
) -> Read:
    from kafkaio._cli.records.protobuf import message_reader

    return message_reader(schema, references, indexes)


_READERS: Final[
    Mapping[str, Callable[[Schema, Mapping[str, Schema], bytes | None], Read]]
] = {"json": _json, "protobuf": _protobuf}


class DecodingFailures:
    """Reports records that cannot be decoded; a context manager.

    Args:
        session: the command.
        is_fatal: whether the first one ends the command.

    Attributes:
        rows: the entries of the first ones in ``errors`` of the document.
    """

    def __init__(self, session: CommandSession, *, is_fatal: bool) -> None:
        self.rows: list[dict[str, object]] = []
        self._session = session
        self._is_fatal = is_fatal
        self._failed = 0
        self._decoded = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._failed > _SHOWN:
            self._session.note(f"and {self._failed - _SHOWN} more")
        if self._failed:
            self._session.exit_with(Exit.PARTIAL if self._decoded else Exit.FAILED)

    def succeeded(self) -> None:
        """Count a record that was decoded."""
        self._decoded += 1

    def failed(self, error: UndecodableRecord) -> None:
        """Report a record, unless it ends the command.

        Raises:
            UndecodableRecord: it does.
        """
        if len(self.rows) < _SHOWN:
            cause = error.__cause__ or error
            self.rows.append({**error_row(cause), "item": error.place})
        if self._is_fatal:
            raise error
        self._failed += 1
        if self._failed <= _SHOWN:
            self._session.note(short(error))


class RecordChooser:
    """Decodes records, and leaves out those that a filter does not keep.

    Args:
        decoder: decodes them; None for records as they are.
        keep: the filter; None for all.
        failures: is told of those that cannot be decoded.
    """

    def __init__(
        self,
        decoder: RecordDecoder | None,
        keep: Filter | None,
        failures: DecodingFailures,
    ) -> None:
        self._decoder = decoder
        self._keep = keep
        self._failures = failures

    @property
    def takes_all(self) -> bool:
        """Whether records are neither decoded nor left out."""
        return self._decoder is None and self._keep is None

    async def chosen(
        self, batch: Iterable[Record], end: int | None
    ) -> AsyncIterator[ShownRecord]:
        """Yield the records of a batch before an offset that are chosen.

        Raises:
            UndecodableRecord: one cannot be decoded, and that ends the command.
            RegistryError: the registry failed.
        """
        decoder, keep = self._decoder, self._keep
        for record in batch:
            if end is not None and record.offset >= end:
                return
            shown: ShownRecord | None = record
            if decoder is not None:
                shown = await self._decoded(decoder, record)
            if shown is not None and (keep is None or keep(shown)):
                yield shown

    async def _decoded(
        self, decoder: RecordDecoder, record: Record
    ) -> DecodedRecord | None:
        try:
            shown = await decoder.decode(record)
        except UndecodableRecord as error:
            self._failures.failed(error)
            return None
        self._failures.succeeded()
        return shown
