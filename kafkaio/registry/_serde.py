"""What the serdes of all schema languages share: which schema, under which id.

A `FormatPort` knows one language; a `SerdeCore` finds the schema that a record names,
or the id under which a value is written, and keeps what the format compiled for each.
A schema that is there costs one look into a dict. Otherwise the core returns a
coroutine that asks the registry, which asks once however many wait.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._schema import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaType,
)
from kafkaio.registry._subjects import FIXED_STRATEGIES, SubjectStrategy, topic_name
from kafkaio.registry._wire import (
    APICURIO_KEY,
    APICURIO_VALUE,
    PREFIX_BYTES,
    SchemaName,
    header_name,
    naming_header,
    pack_guid,
    pack_prefix,
    parse_prefix,
)
from kafkaio.serde import DeserializationContext, SerializationContext

K = TypeVar("K")
V = TypeVar("V")
#: Where a record names its schema.
Wire: TypeAlias = Literal["prefix", "header"]
#: The class of values; None for dicts.
ValueClass: TypeAlias = type | None
#: Returns the bytes of a value, with the prefix.
Write: TypeAlias = Callable[[Any], bytes]
#: Returns the value of bytes from an index on.
Read: TypeAlias = Callable[[bytes, int], Any]

#: A registry keeps a schema in one Kafka record, of a megabyte unless its topic allows
#: more. To parse such a text takes about a second, in which the event loop stands.
MOST_TEXT = 1_048_576
#: Schemas that a serde keeps compiled, for writing and for reading. When it is full it
#: begins again.
MOST_COMPILED = 1000
#: Topics, and subjects, for which a serde remembers its writer; likewise.
MOST_TOPICS = 10_000

_WIRES = ("prefix", "header")


class RegistryPort(Protocol):
    """What a serde needs of a registry."""

    def known(self, schema_id: int | UUID) -> Schema | None:
        """Return the schema of an id or GUID, if it is cached."""
        ...

    def known_id(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        """Return a registered schema, if it is cached."""
        ...

    async def schema(self, schema_id: int) -> Schema:
        """Return the schema of an id."""
        ...

    async def schema_by_guid(self, guid: UUID) -> Schema:
        """Return the schema of a GUID."""
        ...

    async def references(self, schema: Schema) -> Mapping[str, Schema]:
        """Return the schemas that a schema refers to, at any depth, by their names."""
        ...

    async def register(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """Register a schema."""
        ...

    async def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """Find a schema that is registered."""
        ...

    async def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest schema of a subject."""
        ...


@dataclass(slots=True, frozen=True)
class SchemaPart:
    """A schema that has to be registered before the one that refers to it.

    Attributes:
        name: the name of the reference, and its subject.
        text: the schema.
        uses: the names of other parts that it refers to.
    """

    name: str
    text: str
    uses: tuple[str, ...]


class FormatPort(Protocol):
    """One language of schemas, for the values of one serde."""

    @property
    def type(self) -> SchemaType:
        """The language."""
        ...

    @property
    def record(self) -> str:
        """The full name of the record, for subjects; empty if it has none."""
        ...

    @property
    def simple_record(self) -> str:
        """The same without its namespace or package."""
        ...

    @property
    def schema(self) -> Schema | None:
        """The schema of the values, without references to parts; None for any."""
        ...

    @property
    def kind(self) -> ValueClass:
        """The class of the values; None for dicts."""
        ...

    def records_of(self, schema: Schema, data: bytes, start: int) -> set[str]:
        """Return the names, without namespaces, that data of a schema may have.

        Args:
            schema: the schema.
            data: where the message indexes are.
            start: where they begin.
        """
        ...

    @property
    def parts(self) -> Sequence[SchemaPart]:
        """The schemas to register first, in this order."""
        ...

    @property
    def uses(self) -> Sequence[str]:
        """The names of the parts that the schema itself refers to."""
        ...

    def indexes(self, schema: Schema, references: Mapping[str, Schema]) -> bytes:
        """Return the message indexes that follow the id; empty without any."""
        ...

    def writer(
        self, schema: Schema, references: Mapping[str, Schema], prefix: bytes
    ) -> Write:
        """Compile how values are written by a schema, behind a prefix."""
        ...

    def reader(
        self,
        schema: Schema,
        references: Mapping[str, Schema],
        indexes: bytes | None,
        own: Mapping[str, Schema],
    ) -> Read:
        """Compile how what a schema wrote is read.

        Args:
            schema: the schema.
            references: what it refers to.
            indexes: the message indexes; None if the bytes begin with them.
            own: what the schema of the values refers to.
        """
        ...


@dataclass(slots=True, frozen=True)
class SerdeOptions:
    """How a serde uses its registry.

    Attributes:
        subject: the strategy that names subjects.
        register: whether a schema that is not there is registered.
        use_latest: whether values are written by the latest schema of the subject.
        schema_id: the id of the schema by which values are written.
        normalize: whether the registry normalizes schemas before it compares them.
        wire: where records name their schema.
    """

    subject: SubjectStrategy = topic_name
    register: bool = True
    use_latest: bool = False
    schema_id: int | None = None
    normalize: bool = False
    wire: Wire = "prefix"

    def check(self) -> None:
        """Check the values and their combination.

        Raises:
            ConfigurationError: one is wrong.
        """
        if not callable(self.subject):
            raise ConfigurationError(
                f"subject must be a function of a context and the name of a record, "
                f"and is {self.subject!r}"
            )
        if self.wire not in _WIRES:
            raise ConfigurationError(
                f"wire must be 'prefix' or 'header', and is {self.wire!r}"
            )
        number = self.schema_id
        if number is not None and (type(number) is not int or not 0 < number < 2**31):
            raise ConfigurationError(
                f"schema_id must be the id of a schema, from 1 on, and is {number!r}"
            )
        if number is not None and self.use_latest:
            raise ConfigurationError("schema_id and use_latest exclude each other")


@dataclass(slots=True, frozen=True)
class _Writer:
    write: Write
    header: bytes | None


class SerdeCore:
    """Serializes and deserializes in one format, with the schemas of a registry."""

    __slots__ = (
        "_by_subject",
        "_format",
        "_is_fixed",
        "_is_header",
        "_of_keys",
        "_of_values",
        "_options",
        "_readers",
        "_references",
        "_registry",
        "_writers",
    )

    def __init__(
        self, registry: RegistryPort, language: FormatPort, options: SerdeOptions
    ) -> None:
        options.check()
        self._registry = registry
        self._format = language
        self._options = options
        self._is_header = options.wire == "header"
        self._is_fixed = options.subject in FIXED_STRATEGIES
        # By topic where the strategy is fixed; a strategy of the user is asked each
        # time, since it may look at the headers.
        self._of_keys: dict[str, _Writer] = {}
        self._of_values: dict[str, _Writer] = {}
        self._by_subject: dict[str, _Writer] = {}
        # By the schema and its name: subjects of many topics have the same one.
        self._writers: dict[tuple[int, UUID | None, Schema], _Writer] = {}
        # By the prefix of the bytes, or by the id and indexes of a header.
        self._readers: dict[object, Read] = {}
        # Of the schemas that refer to others, which only a request can find.
        self._references: dict[Schema, Mapping[str, Schema]] = {}

    @property
    def registry(self) -> RegistryPort:
        """The registry."""
        return self._registry

    @property
    def kind(self) -> ValueClass:
        """The class of the values; None for dicts."""
        return self._format.kind

    @property
    def record_name(self) -> tuple[str, str]:
        """The language, and the name of the record without its namespace."""
        return self._format.type, self._format.simple_record

    # -- writing -----------------------------------------------------------------------

    def serialize(
        self, value: Any, context: SerializationContext
    ) -> bytes | Coroutine[None, None, bytes]:
        """Return the bytes of a value, or a coroutine while the schema is not known."""
        writers = self._of_keys if context.is_key else self._of_values
        writer = writers.get(context.topic)
        if writer is None:
            return self._serialize_first(value, context)
        if self._is_header or context.headers:
            return _write_with_headers(writer, value, context)
        return writer.write(value)

    def _serialize_first(
        self, value: Any, context: SerializationContext
    ) -> bytes | Coroutine[None, None, bytes]:
        subject = self._options.subject(context, self._format.record)
        writer = self._by_subject.get(subject) or self._known_writer(subject)
        if writer is None:
            return self._serialize_later(value, context, subject)
        self._keep(writer, context, subject)
        return _write_with_headers(writer, value, context)

    async def _serialize_later(
        self, value: Any, context: SerializationContext, subject: str
    ) -> bytes:
        writer = await self._find_writer(subject)
        self._keep(writer, context, subject)
        return _write_with_headers(writer, value, context)

    def _keep(
        self, writer: _Writer, context: SerializationContext, subject: str
    ) -> None:
        _put(self._by_subject, subject, writer, MOST_TOPICS)
        if self._is_fixed:
            writers = self._of_keys if context.is_key else self._of_values
            _put(writers, context.topic, writer, MOST_TOPICS)

    def _known_writer(self, subject: str) -> _Writer | None:
        options, language = self._options, self._format
        if options.schema_id is not None or options.use_latest or language.uses:
            return None
        schema = language.schema
        if schema is None or schema.references:
            return None
        registered = self._registry.known_id(subject, schema)
        if registered is None:
            return None
        return self._writer_of(replace(registered, schema=schema), {})

    async def _find_writer(self, subject: str) -> _Writer:
        registered = await self._find_registered(subject)
        if registered.schema.type != self._format.type:
            raise SchemaError(subject, self._wrong_type(registered.schema))
        references = await self._find_references(registered.schema)
        # Another call may have been here while this one waited.
        return self._by_subject.get(subject) or self._writer_of(
            replace(registered, subject=subject), references
        )

    async def _find_registered(self, subject: str) -> RegisteredSchema:
        registry, options = self._registry, self._options
        if options.schema_id is not None:
            schema = await registry.schema(options.schema_id)
            if self._is_header:
                return await registry.lookup(subject, schema)
            return RegisteredSchema(subject, 0, options.schema_id, schema)
        if options.use_latest:
            return await registry.latest(subject)
        schema = await self._own_schema()
        # Not as the registry has it, which may be normalized: written is by this one.
        return replace(await self._registered(subject, schema), schema=schema)

    async def _own_schema(self) -> Schema:
        """Return the schema of the format, its parts registered and referred to."""
        language = self._format
        if language.schema is None:
            raise ConfigurationError(
                "values have no schema of their own to be written by: pass "
                "use_latest=True or schema_id="
            )
        found: dict[str, SchemaReference] = {}
        for part in language.parts:
            references = tuple(found[name] for name in part.uses)
            schema = Schema(part.text, language.type, references)
            registered = await self._registered(part.name, schema)
            if not registered.version:
                # A registry's answer to a registration may be the id alone.
                registered = await self._registry.lookup(part.name, schema)
            found[part.name] = SchemaReference(part.name, part.name, registered.version)
        if not language.uses:
            return language.schema
        return replace(
            language.schema, references=tuple(found[name] for name in language.uses)
        )

    async def _registered(self, subject: str, schema: Schema) -> RegisteredSchema:
        normalize = self._options.normalize
        if self._options.register:
            return await self._registry.register(subject, schema, normalize=normalize)
        return await self._registry.lookup(subject, schema, normalize=normalize)

    def _writer_of(
        self, registered: RegisteredSchema, references: Mapping[str, Schema]
    ) -> _Writer:
        key = registered.id, registered.guid, registered.schema
        writer = self._writers.get(key)
        if writer is None:
            writer = self._compile_writer(registered, references)
            _put(self._writers, key, writer, MOST_COMPILED)
        return writer

    def _compile_writer(
        self, registered: RegisteredSchema, references: Mapping[str, Schema]
    ) -> _Writer:
        schema = registered.schema
        with _Naming(registered.subject, registered.id):
            check_size(schema)
            indexes = self._format.indexes(schema, references)
            if not self._is_header:
                prefix = pack_prefix(registered.id) + indexes
                return _Writer(self._format.writer(schema, references, prefix), None)
            if registered.guid is None:
                raise ConfigurationError(
                    "wire='header' names schemas by their GUIDs, and the registry "
                    "gives none (Confluent Platform has them from 8.0 on): use "
                    "wire='prefix'"
                )
            header = pack_guid(registered.guid) + indexes
            return _Writer(self._format.writer(schema, references, b""), header)

    async def prepare(self, topic: str, *, is_key: bool) -> None:
        """Find, or register, the schema by which values are written to a topic."""
        context = SerializationContext(topic, [], is_key)
        subject = self._options.subject(context, self._format.record)
        writer = self._by_subject.get(subject) or await self._find_writer(subject)
        self._keep(writer, context, subject)

    # -- reading -----------------------------------------------------------------------

    def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
        """Return the value of bytes, or a coroutine while the schema is not known."""
        name: SchemaName | None = None
        if context.headers:
            name = naming_header(context.headers, is_key=context.is_key)
        if name is None:
            key: object = data[:PREFIX_BYTES]
            read = self._readers.get(key)
            if read is not None:
                return read(data, PREFIX_BYTES)
            name = parse_prefix(data)
        else:
            key = name.id, name.indexes
            read = self._readers.get(key)
        if read is None:
            read = self._known_reader(name, key)
        if read is None:
            return self._deserialize_later(name, key, data)
        return read(data, name.start)

    def name_of(self, data: bytes, context: DeserializationContext) -> SchemaName:
        """Return how a record names its schema.

        Raises:
            SerializationError: it does not, or in a form that cannot be read.
        """
        headers = context.headers
        name = naming_header(headers, is_key=context.is_key) if headers else None
        return name or parse_prefix(data)

    def records_of(self, schema: Schema, name: SchemaName, data: bytes) -> set[str]:
        """Return the names, without namespaces, that what is read may have.

        Raises:
            SerializationError: message indexes make no sense.
            SchemaError: the schema is not valid.
        """
        indexes = name.indexes
        source, start = (data, name.start) if indexes is None else (indexes, 0)
        with _Naming("", name.id):
            check_size(schema)
            return self._format.records_of(schema, source, start)

    async def _deserialize_later(
        self, name: SchemaName, key: object, data: bytes
    ) -> Any:
        read = await self._find_reader(name, key)
        return read(data, name.start)

    def _known_reader(self, name: SchemaName, key: object) -> Read | None:
        schema = self._registry.known(name.id)
        if schema is None:
            return None
        references = self.known_references(schema)
        own = self.known_references(self._format.schema)
        if references is None or own is None:
            return None
        return self._compile_reader(name, key, schema, references, own)

    async def _find_reader(self, name: SchemaName, key: object) -> Read:
        registry = self._registry
        if isinstance(name.id, UUID):
            schema = await registry.schema_by_guid(name.id)
        else:
            schema = await registry.schema(name.id)
        references = await self._find_references(schema)
        own = await self._find_references(self._format.schema)
        # Another call may have been here while this one waited.
        return self._readers.get(key) or self._compile_reader(
            name, key, schema, references, own
        )

    async def _find_references(self, schema: Schema | None) -> Mapping[str, Schema]:
        if schema is None or not schema.references:
            return {}
        found = self._references.get(schema)
        if found is None:
            found = await self._registry.references(schema)
            _put(self._references, schema, found, MOST_COMPILED)
        return found

    def _compile_reader(
        self,
        name: SchemaName,
        key: object,
        schema: Schema,
        references: Mapping[str, Schema],
        own: Mapping[str, Schema],
    ) -> Read:
        with _Naming("", name.id):
            if schema.type != self._format.type:
                raise SchemaError("", self._wrong_type(schema))
            check_size(schema)
            read = self._format.reader(schema, references, name.indexes, own)
        _put(self._readers, key, read, MOST_COMPILED)
        return read

    def beside(self, language: FormatPort) -> SerdeCore:
        """Return a core that reads the same schemas in another way."""
        other = SerdeCore(self._registry, language, self._options)
        other._references = self._references
        return other

    def known_references(self, schema: Schema | None) -> Mapping[str, Schema] | None:
        """Return what a schema refers to, if that is cached."""
        if schema is None or not schema.references:
            return {}
        return self._references.get(schema)

    def known_reader(self, data: bytes) -> Read | None:
        """Return what reads bytes with a prefix, if their schema is cached.

        Raises:
            SerializationError: the prefix is malformed.
            SchemaError: the schema is not valid.
        """
        key = data[:PREFIX_BYTES]
        return self._readers.get(key) or self._known_reader(parse_prefix(data), key)

    def _wrong_type(self, schema: Schema) -> str:
        return f"is a schema of the type {schema.type}, not {self._format.type}"

    def __repr__(self) -> str:
        strategy = self._options.subject
        name = getattr(strategy, "__name__", None) or repr(strategy)
        return f"subject={name}, wire={self._options.wire!r}"


def check_size(schema: Schema) -> None:
    """Check that a schema is not too large to be parsed.

    Raises:
        SchemaError: it is.
    """
    size = len(schema.text)
    if size > MOST_TEXT:
        raise SchemaError(
            "", f"is too large: {size} characters, and {MOST_TEXT} are the most"
        )


def _put(found: dict[K, V], key: K, value: V, most: int) -> None:
    """Keep a value, after all others were dropped if there are too many."""
    if len(found) >= most and key not in found:
        found.clear()
    found[key] = value


class _Naming:
    """Says in a `SchemaError` which schema it is about."""

    __slots__ = ("_id", "_subject")

    def __init__(self, subject: str, schema_id: int | UUID) -> None:
        self._subject = subject
        self._id = schema_id

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        if isinstance(error, SchemaError):
            reason = f"the schema {self._id} {error.reason}"
            raise SchemaError(self._subject, reason) from error.__cause__
        if isinstance(error, RecursionError):
            reason = f"the schema {self._id} is nested too deeply"
            raise SchemaError(self._subject, reason) from None


def _write_with_headers(
    writer: _Writer, value: Any, context: SerializationContext
) -> bytes:
    data = writer.write(value)
    headers, is_key = context.headers, context.is_key
    if headers:
        # A record that was read, and is sent on with its headers, still has the one
        # that names the schema it was read by. Readers would believe it.
        stale = header_name(is_key=is_key)
        apicurio = APICURIO_KEY if is_key else APICURIO_VALUE
        kept = [
            header
            for header in headers
            if header[0] != stale and not header[0].startswith(apicurio)
        ]
        if len(kept) != len(headers):
            headers[:] = kept
    if writer.header is not None:
        headers.append((header_name(is_key=is_key), writer.header))
    return data


# -- errors ----------------------------------------------------------------------------


def field_path(parts: Iterable[object]) -> str:
    """Return names and indices as one string, such as ``lines[2].amount``."""
    text = ""
    for part in parts:
        if isinstance(part, str) and part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def refused_by_class(name: str, error: Exception) -> SerializationError:
    """Return the error for what was read well, and no instance could be made of."""
    field, reason = "", str(error).partition("\n")[0] or type(error).__name__
    errors = getattr(error, "errors", None)
    if callable(errors):  # of pydantic
        first = errors(include_url=False, include_input=False)[0]
        field, reason = field_path(first["loc"]), first["msg"]
    elif type(error).__module__ == "msgspec":
        reason, _, place = reason.partition(" - at `$")
        field = place.rstrip("`").lstrip(".")
    elif isinstance(error, KeyError):
        reason = f"{error} is missing"
    where = f"{field}: " if field else ""
    return SerializationError(
        f"{name} refuses what was read: {where}{reason}", field=field
    )
