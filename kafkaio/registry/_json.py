"""JSON Schema: values as JSON, validated by a schema."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kafkaio._public import public
from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._columns import read_rows
from kafkaio.registry._json_arrow import JsonColumns
from kafkaio.registry._json_classes import schema_of
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
)
from kafkaio.registry._subjects import SubjectStrategy, topic_name
from kafkaio.registry._wire import PREFIX_BYTES
from kafkaio.serde import DeserializationContext, Json, Serde, SerializationContext

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio.registry._client import Registry

T = TypeVar("T")

#: Characters of what a schema wants that an error shows.
_MOST_SHOWN = 100


@public("kafkaio.registry")
class JsonSchema(Serde[T]):
    """Values as JSON, by a JSON schema that a registry keeps.

    ::

        registry = Registry("http://localhost:8081")
        orders = kafkaio.Topic("orders", value=JsonSchema(Order, registry))

    The schema is that of a class, or its text. Classes are those of
    `kafkaio.serde.Json`, and values are written and read as it does: pydantic and
    msgspec give the schemas of their classes, and that of a dataclass or TypedDict
    follows from its annotations. With a text or a dict values are dicts; with ``dict``
    itself they are read whatever their schema is, and written by the one of
    ``use_latest`` or ``schema_id``.

    A value is validated by the schema before it is written, and what was read by the
    schema that wrote it. Whatever a schema refers to with ``$ref`` stands in it or in
    its references: nothing is fetched from anywhere else.

    The result is there at once if the schema is cached; else a coroutine asks the
    registry. A serde may be used in several threads and on several event loops.

    Args:
        schema: the class, or the schema: a text, or what JSON reads of one.
        registry: the registry.
        subject: names the subject: `topic_name`, `record_name`, `topic_record_name`, or
            a function of the context and the title of the schema.
        register: whether a schema that is not there is registered; if not, it is looked
            up.
        use_latest: whether values are validated by the latest schema of the subject,
            and name it.
        schema_id: the id of the schema by which values are validated.
        normalize: whether the registry normalizes schemas before it compares them.
        references: schemas of other subjects that the schema refers to by name.
        wire: where records name their schema: ``prefix`` for an id in front of the
            payload, ``header`` for a GUID in a header. Both are read.
        validate: whether values are validated. Without it the class alone says what
            fits.

    Raises:
        ConfigurationError: jsonschema is not installed, an option is wrong, or the
            class has no form in JSON.
        SchemaError: the schema is not valid.
    """

    __slots__ = ("_columns", "_core", "_format")

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
        validate: bool = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: JsonSchema[Mapping[str, object]],
        schema: str | Mapping[str, object],
        registry: Registry,
        *,
        subject: SubjectStrategy = ...,
        register: bool = ...,
        use_latest: bool = ...,
        schema_id: int | None = ...,
        normalize: bool = ...,
        references: Sequence[SchemaReference] = ...,
        wire: Wire = ...,
        validate: bool = ...,
    ) -> None: ...

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        schema: type[T] | str | Mapping[str, object],
        registry: Registry,
        *,
        subject: SubjectStrategy = topic_name,
        register: bool = True,
        use_latest: bool = False,
        schema_id: int | None = None,
        normalize: bool = False,
        references: Sequence[SchemaReference] = (),
        wire: Wire = "prefix",
        validate: bool = True,
    ) -> None:
        options = SerdeOptions(
            subject, register, use_latest, schema_id, normalize, wire
        )
        self._format = _JsonFormat(schema, tuple(references), validate=validate)
        self._core = SerdeCore(registry, self._format, options)
        self._columns: JsonColumns | None = None

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
            SerializationError: the value does not fit the class or the schema; its
                ``field`` says where. Nothing was written.
            SchemaError: the registry refuses the schema, or does not have it, or it
                refers to one that is not there.
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
            SerializationError: the bytes name no schema, are not JSON, or do not fit
                the schema that wrote them, or the class.
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

        An object is a struct, or a map where it has no named properties; an array is a
        list. Strings of the formats ``date-time``, ``date`` and ``time`` are Arrow's
        times. What may be of several types is a string, of JSON where it is none. The
        type is that of the serde's own schema: what has another is an error, what is
        not in it is left out. Values are not validated otherwise.

        Args:
            data: the bytes of each value, with a prefix; None becomes a null.

        Returns:
            the array; None if the schema of a value is not cached: read that value
            with `deserialize`, and call again. None, too, if values are dicts of any
            schema.

        Raises:
            SerializationError: bytes cannot be read; the message says which.
            SchemaError: a schema is not valid, or refers to what is not there.
            ConfigurationError: pyarrow is not installed, or the schema refers to
                itself.
        """
        schema = self._format.schema
        if schema is None:
            return None
        payloads = read_rows(self._core, data, lambda _, each: each[PREFIX_BYTES:])
        if payloads is None:
            return None
        if self._columns is None:
            references = self._core.known_references(schema)
            if references is None:
                return None
            self._columns = JsonColumns(schema, references)
        return self._columns.array(payloads)

    @property
    def schema(self) -> Schema | None:
        """The schema by which values are written; None if the registry says which."""
        return self._format.schema

    def __repr__(self) -> str:
        return f"JsonSchema({self._format.shown}, {self._core!r})"


class _JsonFormat:
    """JSON Schema, for the values of one serde."""

    __slots__ = ("_json", "_validate", "parts", "record", "schema", "shown", "uses")

    type: SchemaType = "JSON"

    def __init__(
        self,
        schema: object,
        references: tuple[SchemaReference, ...],
        *,
        validate: bool,
    ) -> None:
        self._validate = validate
        self._json: Json[Any] = Json()
        self.parts: Sequence[SchemaPart] = ()
        self.uses: Sequence[str] = ()
        self.schema: Schema | None = None
        self.record = ""
        self.shown = "dict"
        if schema is dict:
            return
        if isinstance(schema, str | Mapping):
            text = schema if isinstance(schema, str) else _text_of(schema)
        elif isinstance(schema, type):
            self._json = Json(schema)
            text = _text_of(schema_of(schema))
        else:
            raise ConfigurationError(
                f"schema must be a class, or a JSON schema as text or dict, and is "
                f"{schema!r}"
            )
        self.schema = Schema(text, "JSON", references)
        check_size(self.schema)
        loaded = _load(text)
        title = loaded.get("title") if isinstance(loaded, dict) else None
        self.record = title if isinstance(title, str) else ""
        self.shown = schema.__name__ if isinstance(schema, type) else self.record
        if validate and not references:
            _Validator(self.schema, {})

    @property
    def kind(self) -> ValueClass:
        """The class of the values; None for dicts."""
        kind = self._json.kind
        return kind if isinstance(kind, type) and kind is not object else None

    @property
    def simple_record(self) -> str:
        """The title of the schema."""
        return self.record

    def records_of(self, schema: Schema, data: bytes, start: int) -> set[str]:
        """Return the title of a schema."""
        del data, start
        loaded = _load(schema.text)
        return {str(loaded.get("title", ""))} if isinstance(loaded, dict) else set()

    def indexes(self, schema: Schema, references: Mapping[str, Schema]) -> bytes:
        """Return no bytes: one schema has one type."""
        del schema, references
        return b""

    def writer(
        self, schema: Schema, references: Mapping[str, Schema], prefix: bytes
    ) -> Write:
        """Return how values are written by a schema, behind a prefix."""
        dump, parse = self._json.serialize, Json().deserialize
        context = SerializationContext("", [], is_key=False)
        reading = DeserializationContext("", (), is_key=False)
        if not self._validate:
            return lambda value: prefix + dump(value, context)
        check = _Validator(schema, references).check

        def write(value: Any) -> bytes:
            data = dump(value, context)
            # What is validated is what readers will see.
            check(parse(data, reading))
            return prefix + data

        return write

    def reader(
        self,
        schema: Schema,
        references: Mapping[str, Schema],
        indexes: bytes | None,
        own: Mapping[str, Schema],
    ) -> Read:
        """Return how what a schema wrote is read."""
        del own
        if indexes:
            raise SchemaError("", "is JSON, and the header names a message in it")
        plain = Json()
        load, parse = self._json.deserialize, plain.deserialize
        is_plain = self._json.kind is object
        context = DeserializationContext("", (), is_key=False)
        if not self._validate:
            return lambda data, start: load(data[start:], context)
        check = _Validator(schema, references).check

        def read(data: bytes, start: int) -> Any:
            payload = data[start:]
            tree = parse(payload, context)
            check(tree)
            return tree if is_plain else load(payload, context)

        return read


def _text_of(schema: object) -> str:
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError("", f"is not a JSON schema: not JSON: {error}") from error


def _load(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError("", f"is not a JSON schema: not JSON: {error}") from error
    if not isinstance(found, dict | bool):
        raise SchemaError("", "is not a JSON schema: it must be an object")
    return found


class _Validator:
    """Checks values of JSON by a schema.

    Args:
        schema: the schema.
        references: the schemas that it refers to, by the names it uses.

    Raises:
        ConfigurationError: jsonschema is not installed.
        SchemaError: the schema is not valid.
    """

    __slots__ = ("_best_match", "_unresolvable", "_validator")

    def __init__(self, schema: Schema, references: Mapping[str, Schema]) -> None:
        try:
            import jsonschema
            from jsonschema_specifications import REGISTRY
            from referencing import Resource
            from referencing.exceptions import Unresolvable
            from referencing.jsonschema import DRAFT202012
        except ImportError as error:
            raise ConfigurationError(
                "JSON Schema needs jsonschema; install it with: "
                "pip install 'kafkaio[registry]'"
            ) from error
        loaded = _load(schema.text)
        # With a registry of its own it fetches nothing: jsonschema's default would.
        resources: Any = REGISTRY
        for name, reference in references.items():
            contents = _load(reference.text)
            resource = Resource.from_contents(contents, DRAFT202012)
            resources = resources.with_resource(name, resource)
        kind = jsonschema.validators.validator_for(loaded)
        extend: Any = jsonschema.validators.extend  # its stub has no types
        try:
            kind.check_schema(loaded)
            quick = extend(kind, {"uniqueItems": _repetitions})
            self._validator = quick(loaded, registry=resources)
        except (jsonschema.SchemaError, RecursionError) as error:
            reason = getattr(error, "message", None) or "nested too deeply"
            raise SchemaError("", f"is not a JSON schema: {reason}") from error
        self._best_match = jsonschema.exceptions.best_match
        self._unresolvable = Unresolvable

    def check(self, tree: Any) -> None:
        """Check a value of JSON.

        Raises:
            SerializationError: it does not fit the schema.
            SchemaError: the schema refers to what is not there.
        """
        try:
            if next(self._validator.iter_errors(tree), None) is None:
                return
            error = self._best_match(self._validator.iter_errors(tree))
        except self._unresolvable as failure:
            raise SchemaError(
                "",
                f"the JSON schema refers to {failure.ref!r}, which is neither in it "
                "nor among its references",
            ) from failure
        except RecursionError as failure:
            raise SerializationError("the value is nested too deeply") from failure
        assert error is not None
        path = list(error.absolute_path)
        if error.validator == "required" and isinstance(error.instance, dict):
            path += [
                name for name in error.validator_value if name not in error.instance
            ][:1]
        field = field_path(path)
        reason = _reason(error.validator, error.validator_value)
        raise SerializationError(f"{field or 'the value'} {reason}", field=field)


def _repetitions(
    validator: Any, wanted: object, items: Any, _schema: object
) -> Iterator[Exception]:
    """Find equal items, as jsonschema asks for it.

    jsonschema compares each object with each other one: ten thousand take a minute.
    """
    if wanted is True and validator.is_type(items, "array"):
        seen = {_comparable(each) for each in items}
        if len(seen) < len(items):
            from jsonschema import ValidationError

            yield ValidationError("has equal items")


def _comparable(tree: Any) -> Hashable:
    """Return an object that is equal for equal values of JSON, as 1 and 1.0 are."""
    if isinstance(tree, bool):
        return "boolean", tree
    if isinstance(tree, list):
        return "array", tuple(map(_comparable, tree))
    if isinstance(tree, dict):
        pairs = ((name, _comparable(each)) for name, each in tree.items())
        return "object", frozenset(pairs)
    found: Hashable = tree
    return found


def _reason(keyword: object, wanted: object) -> str:
    """Say what a schema wants, without the value, which may be nobody's business."""
    if keyword == "required":
        return "is missing"
    if keyword == "type":
        kinds = wanted if isinstance(wanted, list) else [wanted]
        return f"must be of the type {' or '.join(map(str, kinds))}"
    shown = json.dumps(wanted)
    if len(shown) > _MOST_SHOWN:
        return f"does not fit {keyword!r} of the schema"
    return f"does not fit {keyword!r} of the schema: {shown}"
