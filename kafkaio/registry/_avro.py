"""Avro: values by schemas of Avro, written and read by fastavro."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from io import BytesIO
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kafkaio._public import public
from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._avro_arrow import (
    PLAIN,
    UUIDS,
    AvroColumns,
    pyarrow,
    without_logical_types,
)
from kafkaio.registry._avro_classes import ClassCodec, locate
from kafkaio.registry._avro_guard import (
    MOST_DECIMAL,
    check_data,
    check_value,
    compile_check,
    explain,
)
from kafkaio.registry._avro_schema import (
    AvroType,
    ParsedAvro,
    adopt_logical_types,
    check_levels,
    decode_defaults,
    fastavro,
    is_same_data,
    load,
    parse,
    read_all_digits,
    record_of,
    simple_name,
)
from kafkaio.registry._classes import Fault
from kafkaio.registry._columns import read_rows, to_array
from kafkaio.registry._schema import Schema, SchemaReference, SchemaType
from kafkaio.registry._serde import (
    Read,
    SchemaPart,
    SerdeCore,
    SerdeOptions,
    ValueClass,
    Wire,
    Write,
    check_size,
    field_path,
    refused_by_class,
)
from kafkaio.registry._subjects import SubjectStrategy, topic_name
from kafkaio.registry._wire import PREFIX_BYTES
from kafkaio.serde import DeserializationContext, Serde, SerializationContext

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio.registry._client import Registry

T = TypeVar("T")
#: Characters of fastavro's reason in an error.
_MOST_REASON = 200


@public("kafkaio.registry")
class Avro(Serde[T]):
    """Values by a schema of Avro, which a registry keeps.

    ::

        registry = Registry("http://localhost:8081")
        orders = kafkaio.Topic("orders", value=Avro(Order, registry))

    The schema is that of a class, or its text. A class is a dataclass, a TypedDict, or
    a class of pydantic or msgspec; values are its instances. Its schema follows from
    its annotations: ``int`` is ``long``, ``float`` is ``double``, a datetime is
    ``timestamp-micros``, an Enum its symbols, other classes are records of their own.
    A datetime has to have a time zone, and is read in UTC. `AvroAs` gives a field
    another schema, and ``__avro_schema__`` (a text, a dict, or a class method that
    returns one) the class. With a text or a dict values are dicts; with ``dict`` itself
    they are read as they were written, and written by the schema of ``use_latest`` or
    ``schema_id``.

    What was written by another schema is resolved to this one, or to ``reader_schema``:
    fields that are new there get their defaults, fields that are not there are left
    out.

    The result is there at once if the schema is cached; else a coroutine asks the
    registry. A serde may be used in several threads and on several event loops.

    Args:
        schema: the class, or the schema: a text, or what JSON reads of one.
        registry: the registry.
        subject: names the subject: `topic_name`, `record_name`, `topic_record_name`, or
            a function of the context and the full name of the record.
        register: whether a schema that is not there is registered; if not, it is looked
            up.
        use_latest: whether values are written by the latest schema of the subject.
        schema_id: the id of the schema by which values are written.
        normalize: whether the registry normalizes schemas before it compares them.
        references: schemas of other subjects that a text refers to by name.
        wire: where records name their schema: ``prefix`` for an id in front of the
            payload, ``header`` for a GUID in a header. Both are read.
        reader_schema: the schema that dicts, or instances, are read by.
        namespace: the namespace of the records of a class.

    Raises:
        ConfigurationError: fastavro is not installed, an option is wrong, or a field of
            the class has no type in Avro; it is named.
        SchemaError: the schema is not valid.
    """

    __slots__ = ("_arrow", "_core", "_format")

    @overload
    def __init__(
        self,
        schema: type[T],
        registry: Registry,
        *,
        subject: SubjectStrategy = ...,
        register: bool = ...,
        use_latest: bool = ...,
        schema_id: int | None = ...,
        normalize: bool = ...,
        references: Sequence[SchemaReference] = ...,
        wire: Wire = ...,
        reader_schema: str | Mapping[str, object] | None = ...,
        namespace: str = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: Avro[Mapping[str, object]],
        schema: str | Mapping[str, object] | Sequence[object],
        registry: Registry,
        *,
        subject: SubjectStrategy = ...,
        register: bool = ...,
        use_latest: bool = ...,
        schema_id: int | None = ...,
        normalize: bool = ...,
        references: Sequence[SchemaReference] = ...,
        wire: Wire = ...,
        reader_schema: str | Mapping[str, object] | None = ...,
        namespace: str = ...,
    ) -> None: ...

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        schema: type[T] | str | Mapping[str, object] | Sequence[object],
        registry: Registry,
        *,
        subject: SubjectStrategy = topic_name,
        register: bool = True,
        use_latest: bool = False,
        schema_id: int | None = None,
        normalize: bool = False,
        references: Sequence[SchemaReference] = (),
        wire: Wire = "prefix",
        reader_schema: str | Mapping[str, object] | None = None,
        namespace: str = "",
    ) -> None:
        options = SerdeOptions(
            subject, register, use_latest, schema_id, normalize, wire
        )
        self._format = _AvroFormat(schema, tuple(references), reader_schema, namespace)
        self._core = SerdeCore(registry, self._format, options)
        self._arrow: tuple[SerdeCore, _ArrowFormat] | None = None

    def serialize(
        self, value: T, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a value, or a coroutine while the schema is not known.

        Args:
            value: the value.
            context: the topic, and whether it is the key. With ``wire="header"`` its
                headers get the one that names the schema; one that names another
                schema is removed.

        Raises:
            SerializationError: the value does not fit the schema; its ``field`` says
                where. Nothing was written.
            SchemaError: the registry refuses the schema, or does not have it.
            RegistryError: the registry failed.
            ConfigurationError: the registry has no GUIDs, or the strategy no name.
        """
        return self._core.serialize(value, context)

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T | Awaitable[T]:
        """Return the value of bytes, or a coroutine while the schema is not known.

        Args:
            data: the bytes.
            context: the headers, and whether it is the key.

        Raises:
            SerializationError: the bytes name no schema, are not what their schema
                writes, or cannot be resolved to the reader's schema.
            SchemaError: the registry does not have the schema, or it is not valid.
            RegistryError: the registry failed.
        """
        result: T | Awaitable[T] = self._core.deserialize(data, context)
        return result

    async def prepare(self, topic: str, *, is_key: bool = False) -> None:
        """Find, or register, the schema for a topic before the first record.

        Args:
            topic: the topic to which values will be written.
            is_key: whether they are keys.

        Raises:
            SchemaError: the registry refuses the schema, or does not have it.
            RegistryError: the registry failed.
        """
        await self._core.prepare(topic, is_key=is_key)

    def to_arrow(self, data: Sequence[bytes | None]) -> pa.Array | None:
        """Return a whole batch as Arrow columns, without instances of the class.

        A record is a struct, a list a list, a map a map; times, dates and decimals are
        Arrow's; a symbol of an enumeration and a UUID are strings. A union with null is
        a column with nulls; another one is a struct of ``member0``, ``member1``, ...,
        as in Spark. The type is that of the reader's schema, whatever wrote the
        values.

        Args:
            data: the bytes of each value, with a prefix; None becomes a null.

        Returns:
            the array; None if the schema of a value is not cached: read that value
            with `deserialize`, and call again. None, too, if values are dicts of any
            schema: pass ``reader_schema``.

        Raises:
            SerializationError: bytes cannot be read; the message says which.
            SchemaError: a schema is not valid.
            ConfigurationError: pyarrow is not installed, or the schema refers to
                itself.
        """
        if self._format.reader_schema is None:
            return None
        if self._arrow is None:
            language = _ArrowFormat(self._format)
            self._arrow = self._core.beside(language), language
        core, language = self._arrow
        rows = read_rows(core, data, lambda read, each: read(each, PREFIX_BYTES))
        if rows is None:
            return None
        own = core.known_references(self._format.schema)
        if own is None and language.columns is None:
            # There are tombstones alone, and what tells the type was not asked for.
            return pyarrow().nulls(len(rows))
        return to_array(rows, language.prepare(own or {}).type, self._format.shown)

    @property
    def schema(self) -> Schema | None:
        """The schema by which values are written; None if the registry says which."""
        return self._format.schema

    def __repr__(self) -> str:
        return f"Avro({self._format.shown}, {self._core!r})"


class _AvroFormat:
    """Avro, for the values of one serde."""

    __slots__ = (
        "_codec",
        "is_self_contained",
        "parts",
        "reader_schema",
        "record",
        "schema",
        "shown",
        "uses",
    )

    type: SchemaType = "AVRO"

    def __init__(
        self,
        schema: object,
        references: tuple[SchemaReference, ...],
        reader_schema: str | Mapping[str, object] | None,
        namespace: str,
    ) -> None:
        fastavro()
        self._codec: ClassCodec | None = None
        self.parts: Sequence[SchemaPart] = ()
        self.uses: Sequence[str] = ()
        self.schema: Schema | None = None
        self.shown, self.record = "dict", ""
        self.reader_schema: AvroType = None
        self.is_self_contained = reader_schema is not None or not references
        if reader_schema is not None:
            self.reader_schema = load(_text_of(reader_schema))
            parse(self.reader_schema, {})
        if schema is dict:
            return
        if isinstance(schema, type):
            self._codec = ClassCodec(schema, namespace)
        text = _text_of(self._codec.schema if self._codec else schema)
        self.schema = Schema(text, "AVRO", references)
        check_size(self.schema)
        loaded = load(text)
        self.record = record_of(loaded)
        self.shown = self._codec.kind.__name__ if self._codec else self.record
        if not references:
            parse(loaded, {})
        if reader_schema is None:
            self.reader_schema = loaded

    @property
    def kind(self) -> ValueClass:
        """The class of the values; None for dicts."""
        return None if self._codec is None else self._codec.kind

    @property
    def simple_record(self) -> str:
        """The name of the record, without its namespace."""
        return simple_name(self.record)

    def records_of(self, schema: Schema, data: bytes, start: int) -> set[str]:
        """Return the name of a schema, without its namespace."""
        del data, start
        return {simple_name(record_of(load(schema.text)))}

    def indexes(self, schema: Schema, references: Mapping[str, Schema]) -> bytes:
        """Return no bytes: one schema has one type."""
        del schema, references
        return b""

    def writer(
        self, schema: Schema, references: Mapping[str, Schema], prefix: bytes
    ) -> Write:
        """Compile how values are written by a schema, behind a prefix."""
        parsed = parse(load(schema.text), references)
        extract = None
        if self._codec is not None:
            extract = self._codec.extractor(parsed.named)
        return _compile_write(parsed, self._codec, extract, prefix)

    def reader(
        self,
        schema: Schema,
        references: Mapping[str, Schema],
        indexes: bytes | None,
        own: Mapping[str, Schema],
    ) -> Read:
        """Compile how what a schema wrote is read."""
        if indexes:
            raise SchemaError("", "is Avro, and the header names a message in it")
        writer = parse(load(schema.text), references)
        reader = None
        if self.reader_schema is not None:
            reader = parse(self.reader_schema, {} if self.is_self_contained else own)
            adopt_logical_types(writer, reader)
            if is_same_data(writer, reader):
                reader = None
        codec = self._codec
        return _compile_read(writer, reader, is_tagged=codec is not None, codec=codec)


class _ArrowFormat:
    """Avro, read as what pyarrow takes."""

    __slots__ = (
        "_format",
        "_reader",
        "columns",
        "kind",
        "parts",
        "record",
        "schema",
        "simple_record",
        "uses",
    )

    type: SchemaType = "AVRO"

    def __init__(self, language: _AvroFormat) -> None:
        self._format = language
        self.schema, self.record = language.schema, language.record
        self.kind, self.simple_record = language.kind, language.simple_record
        self.parts, self.uses = language.parts, language.uses
        #: Known with the first value: what the schema refers to may be needed.
        self.columns: AvroColumns | None = None
        self._reader: AvroType = language.reader_schema

    def records_of(self, schema: Schema, data: bytes, start: int) -> set[str]:
        """Return the name of a schema, as the format itself does."""
        return self._format.records_of(schema, data, start)

    def prepare(self, own: Mapping[str, Schema]) -> AvroColumns:
        """Find the type in Arrow, if that has not been done.

        Args:
            own: what the schema of the columns refers to.
        """
        if self.columns is None:
            references = {} if self._format.is_self_contained else own
            self.columns = AvroColumns(parse(self._reader, references))
        return self.columns

    def indexes(self, schema: Schema, references: Mapping[str, Schema]) -> bytes:
        """Return no bytes: nothing is written."""
        return self._format.indexes(schema, references)

    def writer(
        self, schema: Schema, references: Mapping[str, Schema], prefix: bytes
    ) -> Write:
        """Compile how values are written, as the format itself does."""
        return self._format.writer(schema, references, prefix)

    def reader(
        self,
        schema: Schema,
        references: Mapping[str, Schema],
        indexes: bytes | None,
        own: Mapping[str, Schema],
    ) -> Read:
        """Compile how what a schema wrote is read as what pyarrow takes."""
        del indexes
        convert = self.prepare(own).convert
        needed = {} if self._format.is_self_contained else own
        text = load(schema.text)
        writer, reader = parse(text, references), parse(self._reader, needed)
        adopt_logical_types(writer, reader)
        if is_same_data(writer, reader):
            plain = _parse_without(PLAIN, text, references)
            read = _compile_read(plain, None, is_tagged=True)
        else:
            # What the bytes of a time mean may differ: fastavro knows both.
            writer = _parse_without(UUIDS, text, references)
            reader = _parse_without(UUIDS, self._reader, needed)
            adopt_logical_types(writer, reader)
            read = _compile_read(writer, reader, is_tagged=True)
        if convert is None:
            return read
        return lambda data, start: convert(read(data, start))


def _parse_without(
    names: frozenset[str], schema: AvroType, references: Mapping[str, Schema]
) -> ParsedAvro:
    others = {
        name: Schema(json.dumps(without_logical_types(load(each.text), names)))
        for name, each in references.items()
    }
    return parse(without_logical_types(schema, names), others)


def _text_of(schema: object) -> str:
    if isinstance(schema, str):
        # The name of a type, such as "string", stands in JSON in quotes.
        is_json = schema.lstrip()[:1] in ("{", "[", '"')
        return schema if is_json else json.dumps(schema)
    if not isinstance(schema, Mapping | list | tuple):
        raise ConfigurationError(
            f"schema must be a class, or a schema of Avro as text or dict, and is "
            f"{schema!r}"
        )
    check_levels(schema)
    try:
        return json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise SchemaError("", f"is not valid Avro: not JSON: {error}") from error


def _compile_write(
    parsed: ParsedAvro,
    codec: ClassCodec | None,
    extract: Callable[[Any], Any] | None,
    prefix: bytes,
) -> Write:
    schemaless_writer = fastavro().schemaless_writer
    schema, has_cycle = parsed.schema, parsed.has_cycle
    fits = compile_check(parsed)

    def write(value: Any) -> bytes:
        try:
            datum = value if extract is None else extract(value)
            if has_cycle:
                check_value(datum)
            if fits is not None and not fits(datum):
                _check_again(parsed, datum)
            out = BytesIO()
            out.write(prefix)
            schemaless_writer(out, schema, datum)
            return out.getvalue()
        except SerializationError:
            raise
        except Exception as error:
            raise _explained(parsed, codec, extract, value, error) from error

    return write


def _check_again(parsed: ParsedAvro, datum: Any) -> None:
    """Check a value that does not look right, but may fit, such as a subclass of int.

    Raises:
        SerializationError: it does not fit.
    """
    fault = explain(parsed, datum)
    if fault is not None:
        raise _misfit(fault)


def _explained(
    parsed: ParsedAvro,
    codec: ClassCodec | None,
    extract: Callable[[Any], Any] | None,
    value: Any,
    error: Exception,
) -> SerializationError:
    """Find out why a value could not be written, for which there is time now."""
    fault = None if codec is None else locate(codec.kind, value)
    if fault is None:
        try:
            datum = value if extract is None else extract(value)
        except Exception as failure:  # noqa: BLE001 - described by the caller's
            fault = Fault((), f"does not fit its schema: {failure!r}")
        else:
            fault = explain(parsed, datum)
    return _misfit(fault or Fault((), f"does not fit its schema: {error}"))


def _misfit(fault: Fault) -> SerializationError:
    field = field_path(fault.path)
    return SerializationError(f"{field or 'the value'} {fault.reason}", field=field)


def _reader_function(*, is_tagged: bool) -> Callable[..., Any]:
    read: Callable[..., Any] = fastavro().schemaless_reader
    if not is_tagged:
        return read
    return partial(read, return_record_name=True, return_record_name_override=True)


def _compile_read(
    writer: ParsedAvro,
    reader: ParsedAvro | None,
    *,
    is_tagged: bool,
    codec: ClassCodec | None = None,
) -> Read:
    """Compile how dicts, or instances of a class, are read.

    Args:
        writer: the schema that wrote the data.
        reader: the schema of the dicts, if it is another.
        is_tagged: whether a record in a union is a tuple of its name and the dict.
        codec: makes the instances; None for dicts.
    """
    is_tagged = is_tagged and (reader or writer).has_record_union
    schemaless_reader = _reader_function(is_tagged=is_tagged)
    writer_schema = writer.schema
    reader_schema = None if reader is None else reader.schema
    is_shared = reader is not None and decode_defaults(reader)
    # A smaller record has no decimal that takes long, and need not be walked for it.
    most_unguarded: float = -1 if writer.needs_guard else inf
    if read_all_digits(writer):
        most_unguarded = min(most_unguarded, 8 * MOST_DECIMAL)
    build = None if codec is None else codec.build

    def read(data: bytes, start: int) -> Any:
        file = BytesIO(data)
        file.seek(start)
        try:
            if len(data) > most_unguarded:
                check_data(writer, data, start)
            datum = schemaless_reader(file, writer_schema, reader_schema)
        except SerializationError:
            raise
        except Exception as error:
            raise _unreadable(error) from error
        if file.tell() != len(data):
            rest = len(data) - file.tell()
            raise SerializationError(f"{rest} bytes follow the value of the schema")
        if is_shared:
            # fastavro puts the same list, or dict, of a default into each record.
            datum = deepcopy(datum)
        if build is None:
            return datum
        try:
            return build(datum)
        except Exception as error:
            assert codec is not None
            raise refused_by_class(codec.kind.__name__, error) from error

    return read


def _unreadable(error: Exception) -> SerializationError:
    if type(error).__name__ == "SchemaResolutionError":
        # fastavro's text may have both schemas, and all that they use.
        reason = str(error)
        if len(reason) > _MOST_REASON:
            reason = f"{reason[:_MOST_REASON]}..."
        return SerializationError(
            f"what was written cannot be read by the reader's schema: {reason}"
        )
    if isinstance(error, EOFError):
        return SerializationError("the data is truncated")
    return SerializationError(f"the data is not what its schema writes: {error!r}")
