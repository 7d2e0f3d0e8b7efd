"""Encodes keys and values for ``kafkaio produce -s``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkaio._cli.records.decoding import SERDES
from kafkaio._cli.records.input import InputError
from kafkaio._cli.records.sides import PLAIN, REGISTERED, TEXTS, Sides
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._named_tuple import NamedTuple
from kafkaio._topic import SerializationContext
from kafkaio.errors import SerializationError

if TYPE_CHECKING:
    from kafkaio.registry import Registry, Schema

#: Returns the bytes of a text; raises `SerializationError`.
Write = Callable[[bytes], bytes]


class SchemaChoice(NamedTuple):
    """Which schema values are written by.

    Attributes:
        file: a schema that is registered; None for one that the registry has.
        schema_id: the id of a schema.
        subject: the subject, whose latest schema it is without a file; None for
            ``TOPIC-value`` and ``TOPIC-key``.
        message: the message of a Protobuf file; None for the first.
    """

    file: Schema | None = None
    schema_id: int | None = None
    subject: str | None = None
    message: str | None = None


class RecordEncoder:
    """Encodes the keys and values of records.

    Args:
        formats: the formats of keys and of values; None for bytes as they are.
        schemas: the schemas of both.
        registry: makes the client of the registry.
    """

    def __init__(
        self,
        formats: Sides[str],
        schemas: Sides[SchemaChoice],
        registry: Callable[[], Registry],
    ) -> None:
        self._formats = formats
        self._schemas = schemas
        self._make_registry = registry
        # By topic, and whether it is for keys.
        self._writes: dict[tuple[str, bool], Write] = {}

    @cached_property
    def _registry(self) -> Registry:
        # Made when it is needed: the formats of Kafka have no schemas.
        return self._make_registry()

    async def encode(
        self, topic: str, data: bytes | None, line: int, *, is_key: bool
    ) -> bytes | None:
        """Return the bytes of a key or a value that was read as text.

        Args:
            topic: the topic.
            data: the text; null stays null.
            line: the line in the input, for messages.
            is_key: whether it is a key.

        Raises:
            InputError: the text does not fit.
            SchemaError: the registry does not have the schema, or refuses it.
            RegistryError: the registry failed.
        """
        name = self._formats.of(is_key=is_key)
        if name is None or data is None:
            return data
        write = await self._prepared(name, topic, is_key=is_key)
        side = "key" if is_key else "value"
        try:
            return write(data)
        except SerializationError as error:
            raise InputError(f"line {line}: {side}: {error}") from error
        except RecursionError:
            text = f"line {line}: {side}: it is nested too deeply"
            raise InputError(text) from None

    def own_headers(
        self, headers: Iterable[tuple[str, bytes | None]]
    ) -> list[tuple[str, bytes | None]]:
        """Return headers without those that name the schema of what is encoded here.

        Records that `consume` printed may have them, and readers would believe them.
        """
        sides = {"key": self._formats.key, "value": self._formats.value}
        stale = {f"__{side}_schema_id" for side, name in sides.items() if name}
        return [header for header in headers if header[0] not in stale]

    async def prepare(self, topic: str) -> None:
        """Find, or register, the schemas for a topic before anything is sent.

        Raises:
            SchemaError: the registry does not have one, or refuses it.
            RegistryError: the registry failed.
        """
        for is_key in (True, False):
            name = self._formats.of(is_key=is_key)
            if name is not None:
                await self._prepared(name, topic, is_key=is_key)

    async def _prepared(self, name: str, topic: str, *, is_key: bool) -> Write:
        write = self._writes.get((topic, is_key))
        if write is None:
            if name in PLAIN:
                write = _plain(name, topic, is_key=is_key)
            else:
                write = await self._registered(name, topic, is_key=is_key)
            self._writes[topic, is_key] = write
        return write

    async def _registered(self, name: str, topic: str, *, is_key: bool) -> Write:
        choice = self._schemas.of(is_key=is_key) or SchemaChoice()
        schema_id, schema = await self._schema(choice, topic, is_key=is_key)
        if schema.type != REGISTERED[name]:
            wanted = next(key for key, it in REGISTERED.items() if it == schema.type)
            text = f"schema {schema_id} is of {schema.type}: use -s {wanted}"
            raise CommandFailed(text, Exit.USAGE)
        if name == "protobuf":
            return await self._protobuf(schema_id, schema, choice.message)
        return await self._by_serde(schema_id, schema, topic, is_key=is_key)

    async def _by_serde(
        self, schema_id: int, schema: Schema, topic: str, *, is_key: bool
    ) -> Write:
        from kafkaio.registry import Avro, JsonSchema

        is_avro = schema.type == "AVRO"
        serde: Avro[Any] | JsonSchema[Any] = (Avro if is_avro else JsonSchema)(
            schema.text,
            self._registry,
            schema_id=schema_id,
            references=schema.references,
        )
        await serde.prepare(topic, is_key=is_key)
        convert = await self._avro_datum(schema) if is_avro else _read
        context = SerializationContext(topic, [], is_key)

        def write(data: bytes) -> bytes:
            written = serde.serialize(convert(data), context)
            # Prepared above, so it does not have to wait.
            assert isinstance(written, bytes)
            return written

        return write

    async def _avro_datum(self, schema: Schema) -> Callable[[bytes], object]:
        from kafkaio._cli.records.avro_datum import datum_of
        from kafkaio.registry._avro_schema import load, parse

        parsed = parse(load(schema.text), await self._references(schema))
        return lambda data: datum_of(parsed, _read_decimals(data))

    async def _protobuf(
        self, schema_id: int, schema: Schema, message: str | None
    ) -> Write:
        from kafkaio._cli.records.protobuf import message_writer
        from kafkaio.registry._wire import pack_prefix

        payload = message_writer(schema, await self._references(schema), message)
        prefix = pack_prefix(schema_id)
        return lambda data: prefix + payload(_read(data))

    async def _references(self, schema: Schema) -> Mapping[str, Schema]:
        if not schema.references:
            return {}
        return await self._registry.references(schema)

    async def _schema(
        self, choice: SchemaChoice, topic: str, *, is_key: bool
    ) -> tuple[int, Schema]:
        registry = self._registry
        if choice.schema_id is not None:
            return choice.schema_id, await registry.schema(choice.schema_id)
        subject = choice.subject or f"{topic}-{'key' if is_key else 'value'}"
        if choice.file is None:
            latest = await registry.latest(subject)
            return latest.id, latest.schema
        # Not as the registry has it, which may be normalized: written is by this one.
        return (await registry.register(subject, choice.file)).id, choice.file


# ---- text ----------------------------------------------------------------------------


def _read(data: bytes) -> Any:
    return _parsed(data, float)


def _read_decimals(data: bytes) -> Any:
    # A decimal of Avro keeps every digit.
    return _parsed(data, Decimal)


def _parsed(data: bytes, number: Callable[[str], object]) -> Any:
    try:
        return json.loads(data.decode(), parse_float=number)
    except UnicodeDecodeError:
        raise SerializationError("it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"it is not JSON: {error}") from None


def _plain(name: str, topic: str, *, is_key: bool) -> Write:
    serde = SERDES[name]
    context = SerializationContext(topic, [], is_key)

    def write(data: bytes) -> bytes:
        written = serde.serialize(_value(name, data), context)
        assert isinstance(written, bytes)
        return written

    return write


def _value(name: str, data: bytes) -> object:
    if name not in TEXTS:
        return _read(data)
    try:
        text = data.decode()
        return UUID(text) if name == "uuid" else text
    except ValueError:
        kind = "a UUID" if name == "uuid" else "UTF-8"
        raise SerializationError(f"it is not {kind}") from None
